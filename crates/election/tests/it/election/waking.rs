//! A leader that was frozen for longer than it may lead.

use std::sync::mpsc;
use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_election::{Elections, LeaderLoss, Settings};
use tokio::sync::oneshot;

use crate::stage::{Stage, on_every_store, settings, soon};

on_every_store! { @ memory, Memory, a_late_resignation_does_not_shorten_the_lock_delay }
on_every_store! { servers: a_late_resignation_does_not_shorten_the_lock_delay }

const LOCK_DELAY: Duration = Duration::from_secs(2);

fn careful(instance: &str) -> Settings {
    let ttl = Duration::from_secs(1);
    settings(instance).with_ttl(ttl).with_lock_delay(LOCK_DELAY)
}

async fn a_late_resignation_does_not_shorten_the_lock_delay(stage: Stage) {
    let elections = stage.elections().await;
    let (frozen, is_frozen) = oneshot::channel();
    let (wake, woken) = mpsc::channel::<()>();
    let (resigned, has_resigned) = oneshot::channel();
    let (end, ended) = oneshot::channel::<()>();
    std::thread::scope(|scope| {
        let stage = &stage;
        // A runtime of its own, whose only thread stands still: nothing of the leader goes on.
        scope.spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let elections = stage.elections().await;
                let candidate = elections.candidate("job", careful("late")).unwrap();
                let leadership = soon(candidate.campaign()).await.unwrap();
                frozen.send(()).unwrap();
                woken.recv().unwrap();
                assert_eq!(leadership.loss(), Some(LeaderLoss::Expired));
                leadership.resign().await.unwrap();
                resigned.send(()).unwrap();
                ended.await.unwrap();
            });
        });
        tokio::task::block_in_place(|| {
            tokio::runtime::Handle::current().block_on(async {
                soon(is_frozen).await.unwrap();
                soon(lapsed(&elections)).await;
                let lapsed = boot_time();
                wake.send(()).unwrap();
                soon(has_resigned).await.unwrap();
                // It never saw the leader, and sees only what that left behind.
                let candidate = elections.candidate("job", careful("next")).unwrap();
                let leadership = soon(candidate.campaign()).await.unwrap();
                assert!(leadership.is_leader());
                let waited = boot_time() - lapsed;
                assert!(waited >= LOCK_DELAY, "only {waited:?} after the leader was gone");
                end.send(()).unwrap();
            });
        });
    });
}

/// Waits until nobody leads.
async fn lapsed(elections: &Elections) {
    let mut looks = tokio::time::interval(Duration::from_millis(20));
    while elections.leader("job").await.unwrap().is_some() {
        looks.tick().await;
    }
}
