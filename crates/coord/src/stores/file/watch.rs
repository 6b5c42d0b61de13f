//! Changes of a directory, announced by the kernel: one reader of a directory tells all who listen.

use std::collections::HashSet;
use std::convert::Infallible;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{EventMask, EventOwned, EventStream, Inotify, WatchMask};
use tokio::runtime::{self, Handle};
use tokio::sync::oneshot;

use crate::store::{Announcer, Changes};
use crate::sync::lock;
use crate::time::boot_time;

/// The kernel tells of a closed lock file just before it lets go of the lock, so every
/// announcement is repeated after these pauses: soon, for that is nearly always long enough, and then
/// less soon.
const LATER_LOOKS: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
];
/// Room for many events: that something changed is all that is told.
const EVENTS_BYTES: usize = 4096;
/// How long a reader stays that nobody listens to: whoever holds one election after the other needs
/// it again soon, and whoever does not is not to be woken by every renewal of others.
const UNUSED_MAX: Duration = Duration::from_mins(1);

/// The directories that a store reads the changes of.
///
/// A kernel that begins to watch a directory goes through all files in it, so a reader is shared by
/// all who listen, and by those who come later.
#[derive(Default)]
pub(super) struct Watches(Mutex<Vec<Reader>>);

/// The reader of one directory, as those see it who want to listen.
struct Reader {
    directory: PathBuf,
    inode: Inode,
    /// Where its task runs. One that nobody drives any more, or that a forked process has a copy of,
    /// reads nothing: whoever comes from another runtime has a reader there.
    runtime: runtime::Id,
    listeners: Arc<Listeners>,
    /// The task ends when this is dropped.
    _stop: oneshot::Sender<Infallible>,
}

/// Which directory is at a path: the device, and the number on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Inode(u64, u64);

impl Watches {
    /// Announces records that come from a new holder, and locks that end, also with their process:
    /// of every slot in the directory, or of one.
    pub(super) fn listen(&self, directory: &Path, only: Option<&str>) -> io::Result<Changes> {
        let (announcer, heard) = Changes::channel();
        let listener = Listener { only: only.map(str::to_owned), announcer };
        let runtime = Handle::current().id();
        let mut readers = lock(&self.0);
        let found = fs::metadata(directory)?;
        let inode = Inode(found.dev(), found.ino());
        // Whoever listens to a directory that was replaced hears that this is over.
        readers.retain(|reader| reader.directory != directory || reader.inode == inode);
        let is_added = readers.iter().any(|reader| {
            (reader.directory.as_path(), reader.runtime) == (directory, runtime)
                && reader.listeners.add(listener.clone())
        });
        if !is_added {
            readers.retain(|reader| !reader.listeners.are_gone());
            readers.push(Reader::start(directory, inode, listener)?);
        }
        drop(readers);
        Ok(repeated(heard))
    }
}

impl Reader {
    /// `inode` was seen before: if the directory is replaced meanwhile, the next who listens notices.
    fn start(directory: &Path, inode: Inode, first: Listener) -> io::Result<Self> {
        let inotify = Inotify::init()?;
        inotify.watches().add(directory, WatchMask::MOVED_TO | WatchMask::CLOSE_WRITE)?;
        let events = inotify.into_event_stream([0; EVENTS_BYTES])?;
        let listeners = Arc::new(Listeners::of(first));
        let mut reading = Reading { events, listeners: listeners.clone() };
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(async move {
            tokio::select! {
                _ = stopped => {}
                () = reading.run() => {}
            }
        });
        let (directory, runtime) = (directory.to_owned(), Handle::current().id());
        Ok(Self { directory, inode, runtime, listeners, _stop: stop })
    }
}

/// The task of a reader. However it ends, those who listen hear that it has.
struct Reading {
    events: EventStream<[u8; EVENTS_BYTES]>,
    listeners: Arc<Listeners>,
}

impl Reading {
    async fn run(&mut self) {
        let mut presence = Presence::default();
        while let Some(Ok(event)) = self.events.next().await {
            // If ignored from now on, the directory was removed.
            let is_over = event.mask.contains(EventMask::IGNORED);
            if is_over || !self.listeners.tell(presence.changed_by(&event), boot_time()) {
                return;
            }
        }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.listeners.end();
    }
}

/// Those who listen to a reader; `None` once it has ended.
struct Listeners(Mutex<Option<ListenerSet>>);

struct ListenerSet {
    listeners: Vec<Listener>,
    /// Since when nobody was found to listen, in boot time.
    unused_since: Option<Duration>,
}

#[derive(Clone)]
struct Listener {
    /// The slot that matters, if not all do.
    only: Option<String>,
    announcer: Announcer,
}

impl Listeners {
    fn of(first: Listener) -> Self {
        Self(Mutex::new(Some(ListenerSet { listeners: vec![first], unused_since: None })))
    }

    /// `false`: the reader has ended.
    fn add(&self, listener: Listener) -> bool {
        let mut audience = lock(&self.0);
        let Some(audience) = audience.as_mut() else { return false };
        // Where nothing changes nobody else notices who has gone.
        audience.listeners.retain(|listener| !listener.announcer.is_closed());
        audience.listeners.push(listener);
        true
    }

    /// Tells those whom a change matters to. `false`: nobody has listened for long, and the reader
    /// has ended.
    fn tell(&self, changed: Changed, now: Duration) -> bool {
        let mut state = lock(&self.0);
        let Some(audience) = state.as_mut() else { return false };
        audience.listeners.retain(|listener| match changed.matters_to(listener) {
            true => listener.announcer.announce(),
            false => !listener.announcer.is_closed(),
        });
        if !audience.listeners.is_empty() {
            audience.unused_since = None;
        } else if now >= *audience.unused_since.get_or_insert(now) + UNUSED_MAX {
            *state = None;
        }
        state.is_some()
    }

    fn end(&self) {
        *lock(&self.0) = None;
    }

    fn are_gone(&self) -> bool {
        lock(&self.0).is_none()
    }
}

/// Whose presence changed by an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Changed<'a> {
    Nothing,
    Slot(&'a str),
    /// Events were missed.
    Unknown,
}

impl Changed<'_> {
    fn matters_to(self, listener: &Listener) -> bool {
        match self {
            Changed::Nothing => false,
            Changed::Slot(slot) => listener.only.as_deref().is_none_or(|only| only == slot),
            Changed::Unknown => true,
        }
    }
}

/// Who is present, as far as events tell.
#[derive(Debug, Default)]
struct Presence {
    /// The slots whose records were seen to be replaced since their locks last ended: what replaces
    /// them further is a renewal, which nobody waits for.
    renewing: HashSet<String>,
}

impl Presence {
    /// Who came or went.
    fn changed_by<'a>(&mut self, event: &'a EventOwned) -> Changed<'a> {
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            self.renewing.clear();
            return Changed::Unknown;
        }
        let Some(file) = event.name.as_ref().and_then(|name| name.to_str()) else {
            return Changed::Unknown;
        };
        let (slot, is_record) = match file.strip_prefix('.') {
            None => (file, true),
            Some(hidden) => match hidden.strip_suffix(".lock") {
                Some(slot) => (slot, false),
                // A draft is the beginning of a record.
                None => return Changed::Nothing,
            },
        };
        let is_renewal = is_record && !self.renewing.insert(slot.to_owned());
        if !is_record {
            self.renewing.remove(slot);
        }
        if is_renewal { Changed::Nothing } else { Changed::Slot(slot) }
    }
}

/// Announces what is heard, and again after each of [`LATER_LOOKS`].
fn repeated(mut heard: Changes) -> Changes {
    let (announcer, changes) = Changes::channel();
    tokio::spawn(async move {
        tokio::select! {
            () = announcer.closed() => {}
            () = repeat(&mut heard, &announcer) => {}
        }
    });
    changes
}

async fn repeat(heard: &mut Changes, announcer: &Announcer) {
    let mut later = [].iter();
    let mut is_listening = true;
    while is_listening {
        let pause = later.as_slice().first().copied();
        tokio::select! {
            change = heard.next() => {
                if change.is_none() {
                    return;
                }
                later = LATER_LOOKS.iter();
            }
            () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {
                later.next();
            }
        }
        is_listening = announcer.announce();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> (Listener, Changes) {
        let (announcer, changes) = Changes::channel();
        (Listener { only: Some("x".into()), announcer }, changes)
    }

    #[test]
    fn a_reader_that_nobody_listens_to_ends_after_a_while() {
        let ((first, heard), (second, heard_too)) = (listener(), listener());
        let listeners = Listeners::of(first);
        let later = |minutes: u32| UNUSED_MAX * minutes;
        assert!(listeners.tell(Changed::Nothing, later(0)));
        assert!(listeners.tell(Changed::Nothing, later(2)), "it ended under a listener");
        drop(heard);
        assert!(listeners.tell(Changed::Nothing, later(3)), "it ended at once");
        assert!(listeners.add(second.clone()));
        assert!(listeners.tell(Changed::Nothing, later(5)));
        drop(heard_too);
        assert!(listeners.tell(Changed::Slot("y"), later(6)));
        assert!(!listeners.tell(Changed::Nothing, later(7)), "it stays for ever");
        assert!(!listeners.add(second), "somebody listens to a reader that has ended");
    }
}
