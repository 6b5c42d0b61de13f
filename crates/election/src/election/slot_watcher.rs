//! One look at a slot, or at all slots of a kind, shared by everybody in the process who waits for it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use frazil_coord::internal::Watching;
use frazil_coord::internal::time::boot_time;
use frazil_coord::{Entry, Error, Look, Presence, Slot, Store, Watched};
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// What was seen at a time: of one election, or of all of them.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct View {
    /// Each by its name.
    pub entries: BTreeMap<String, Entry>,
    /// When the store was asked, in boot time: what happened before is in it. Zero if it never
    /// was.
    pub asked: Duration,
    /// When its answer was here, in boot time.
    pub seen: Duration,
    /// All that the store showed, where one election was looked at: a claim can go by it.
    pub look: Option<Look>,
}

/// Watches and lists the store, and publishes what it sees.
#[derive(Debug)]
pub(super) struct SlotWatcher {
    views: watch::Sender<Arc<View>>,
    wanted: Arc<Notify>,
    task: JoinHandle<()>,
}

/// After the store did not answer; each further pause is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
/// The longest pause while the store does not answer.
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Presence that ends by time is looked at this much after its end.
const AFTER_EXPIRY: Duration = Duration::from_millis(10);
/// Looks that nothing but time asks for are at least this far apart.
const BETWEEN_LOOKS: Duration = Duration::from_millis(100);

impl SlotWatcher {
    /// Begins to look as soon as somebody wants to know.
    pub(super) fn start(store: Arc<dyn Store>, watched: Watched) -> Self {
        let (views, wanted) = (watch::Sender::default(), Arc::new(Notify::new()));
        let task = WatchTask {
            store,
            watched: watched.clone(),
            views: views.clone(),
            wanted: wanted.clone(),
            watching: Watching::new(watched),
            pause: FIRST_PAUSE,
        };
        Self { views, wanted, task: tokio::spawn(task.run()) }
    }

    /// The views from now on, beginning with the last one.
    pub(super) fn subscribe(&self) -> watch::Receiver<Arc<View>> {
        self.views.subscribe()
    }

    /// Asks for a look.
    pub(super) fn look(&self) {
        self.wanted.notify_one();
    }
}

impl Drop for SlotWatcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The watchers of single slots, each for as long as somebody uses it.
#[derive(Debug, Default)]
pub(super) struct SlotWatchers(Mutex<HashMap<Slot, Weak<SlotWatcher>>>);

impl SlotWatchers {
    /// The one of a slot.
    pub(super) fn of(&self, store: &Arc<dyn Store>, slot: &Slot) -> Arc<SlotWatcher> {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(watcher) = watchers.get(slot).and_then(Weak::upgrade) {
            return watcher;
        }
        watchers.retain(|_, watcher| watcher.strong_count() > 0);
        let watcher = Arc::new(SlotWatcher::start(store.clone(), Watched::Slot(slot.clone())));
        watchers.insert(slot.clone(), Arc::downgrade(&watcher));
        watcher
    }
}

struct WatchTask {
    store: Arc<dyn Store>,
    watched: Watched,
    views: watch::Sender<Arc<View>>,
    wanted: Arc<Notify>,
    watching: Watching,
    pause: Duration,
}

impl WatchTask {
    async fn run(mut self) {
        loop {
            self.wanted.notified().await;
            // Watched first: what changes while the store is listed is then looked at again.
            self.watching.begin(self.store.as_ref(), boot_time()).await;
            while self.views.receiver_count() > 0 {
                let next = self.look().await;
                tokio::select! {
                    () = self.wanted.notified() => {}
                    () = self.watching.changed() => {}
                    () = sleep(next) => {}
                }
                self.watching.begin(self.store.as_ref(), boot_time()).await;
            }
        }
    }

    /// Looks; gives how long from now nothing can change without somebody telling.
    async fn look(&mut self) -> Duration {
        let asked = boot_time();
        match self.entries().await {
            Ok((entries, look)) => {
                self.pause = FIRST_PAUSE;
                let next = next_expiry(&entries);
                let entries = entries
                    .into_iter()
                    .map(|entry| (entry.slot.name().to_owned(), entry))
                    .collect();
                let seen = boot_time();
                self.views.send_replace(Arc::new(View { entries, asked, seen, look }));
                next
            }
            Err(error) => {
                tracing::debug!(error = %format_args!("{error:#}"), "the elections cannot be looked at");
                let pause = self.pause;
                self.pause = (pause * 2).min(PAUSE_MAX);
                pause
            }
        }
    }

    /// The slots that are there, and the look at one. A slot that was never used is not there.
    async fn entries(&self) -> Result<(Vec<Entry>, Option<Look>), Error> {
        match &self.watched {
            Watched::Group(group) => Ok((self.store.list(*group).await?, None)),
            Watched::Slot(slot) => {
                let look = self.store.read(std::slice::from_ref(slot)).await?;
                let mut entries = look.entries.clone();
                entries.retain(|entry| *entry != Entry::unused(slot.clone()));
                Ok((entries, Some(look)))
            }
        }
    }
}

/// In how long the first presence may end by time alone; a day if none does.
fn next_expiry(entries: &[Entry]) -> Duration {
    let ends = entries.iter().filter_map(|entry| match entry.presence {
        Presence::Held { expires_in } => expires_in,
        Presence::Free => None,
    });
    ends.min().map_or(Duration::from_hours(24), |left| (left + AFTER_EXPIRY).max(BETWEEN_LOOKS))
}
