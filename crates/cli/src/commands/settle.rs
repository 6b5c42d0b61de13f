//! The wait until what an operator wrote is safe from loss.

use std::future::Future;
use std::time::Duration;

use frazil::coord::internal::Leasing;
use frazil::coord::{Error, Store};

use crate::args::LossArg;
use crate::output::{Exit, Failure, say};

/// Waiting that lasts longer than this is explained.
const PATIENCE: Duration = Duration::from_secs(3);

impl LossArg {
    /// Refuses to write to a store that may lose anything at any time, unless that is accepted.
    pub(super) async fn check(self, store: &dyn Store) -> Result<(), Failure> {
        let history = store.read(&[]).await?.history;
        let loses_nothing = history.id.is_empty();
        if self.accept_loss || loses_nothing || history.settles() {
            return Ok(());
        }
        let why = format!(
            "nothing was written: {store} keeps no append-only file, or does not say whether it \
             does, and may lose what is written. Set appendonly to yes there, or take the risk \
             with --accept-loss"
        );
        Err(Failure::new(Exit::Refused, why))
    }

    /// Waits until what was written cannot be lost any more, unless a loss is accepted.
    pub(super) async fn settle(self, store: &dyn Store) -> Result<(), Failure> {
        if self.accept_loss {
            return Ok(());
        }
        if explained(store.settle_all()).await? {
            return Ok(());
        }
        let why = format!(
            "it was written, and {store} may have lost it: it restarted, or another server took \
             over. Look at it with frazil store show, and run this again"
        );
        Err(Failure::new(Exit::No, why))
    }
}

/// Waits, and says what for if that lasts.
async fn explained(settled: impl Future<Output = Result<bool, Error>>) -> Result<bool, Error> {
    let mut settled = std::pin::pin!(settled);
    if let Ok(settled) = tokio::time::timeout(PATIENCE, &mut settled).await {
        return settled;
    }
    say(
        "it is written, and waits until every server has it: a replica that is missing delays this, \
         and --accept-loss does not wait",
    );
    settled.await
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use async_trait::async_trait;
    use frazil::coord::MemoryStore;
    use frazil::coord::{
        Changes, Commit, Committed, Entry, FreeSlots, Group, Guarantees, History, Look, Meta, Put,
        Slot, UnixMs, Version, Wanted, Watched, Written,
    };

    use super::*;

    const WAITS: LossArg = LossArg { accept_loss: false };
    const TAKES_THE_RISK: LossArg = LossArg { accept_loss: true };

    /// A store with a history, and how often it was asked to settle.
    #[derive(Debug)]
    struct Lossy {
        memory: MemoryStore,
        settled: Option<UnixMs>,
        settles: bool,
        asked: AtomicUsize,
    }

    impl Lossy {
        fn new(settled: Option<UnixMs>, settles: bool) -> Self {
            Self { memory: MemoryStore::new(), settled, settles, asked: AtomicUsize::new(0) }
        }
    }

    #[async_trait]
    impl Store for Lossy {
        fn guarantees(&self) -> Guarantees {
            self.memory.guarantees()
        }

        async fn read(&self, slots: &[Slot]) -> Result<Look, Error> {
            let (since, forked, settled) = (0, 0, self.settled);
            let history =
                History { id: "one".into(), since, forked, settled, ..History::default() };
            Ok(Look { history, clock: Some(1000), ..self.memory.read(slots).await? })
        }

        async fn settle(&self, written: &Written) -> Result<bool, Error> {
            assert_eq!((written.history.as_str(), written.clock), ("one", 1000));
            self.asked.fetch_add(1, Ordering::Relaxed);
            Ok(self.settles)
        }

        async fn list(&self, group: Group) -> Result<Vec<Entry>, Error> {
            self.memory.list(group).await
        }

        async fn free_slots(&self, wanted: &Wanted) -> Result<FreeSlots, Error> {
            self.memory.free_slots(wanted).await
        }

        async fn commit(&self, commit: &Commit) -> Result<Committed, Error> {
            self.memory.commit(commit).await
        }

        async fn put_meta(&self, expected: Option<Version>, meta: &Meta) -> Result<Put, Error> {
            self.memory.put_meta(expected, meta).await
        }

        async fn forget(&self, slot: &Slot, version: Version) -> Result<Put, Error> {
            self.memory.forget(slot, version).await
        }

        async fn watch(&self, watched: &Watched) -> Result<Changes, Error> {
            self.memory.watch(watched).await
        }
    }

    impl fmt::Display for Lossy {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("redis://lossy")
        }
    }

    #[tokio::test]
    async fn nothing_is_written_where_nothing_settles_unless_the_loss_is_accepted() {
        let never = Lossy::new(None, false);
        let refused = WAITS.check(&never).await.unwrap_err();
        let Failure::Message(Exit::Refused, why) = refused else { panic!("{refused:?}") };
        assert!(why.contains("redis://lossy") && why.contains("--accept-loss"), "{why}");
        TAKES_THE_RISK.check(&never).await.unwrap();
        TAKES_THE_RISK.settle(&never).await.unwrap();
        assert_eq!(never.asked.load(Ordering::Relaxed), 0, "nothing is waited for");
    }

    #[tokio::test]
    async fn success_is_reported_once_what_was_written_has_settled() {
        let settles = Lossy::new(Some(500), true);
        WAITS.check(&settles).await.unwrap();
        WAITS.settle(&settles).await.unwrap();
        assert_eq!(settles.asked.load(Ordering::Relaxed), 1);
        let lost = Lossy::new(Some(500), false);
        let failed = WAITS.settle(&lost).await.unwrap_err();
        assert!(matches!(failed, Failure::Message(Exit::No, _)), "{failed:?}");
    }

    #[tokio::test]
    async fn a_store_that_loses_nothing_asks_for_nothing() {
        let memory = MemoryStore::new();
        WAITS.check(&memory).await.unwrap();
        WAITS.settle(&memory).await.unwrap();
    }
}
