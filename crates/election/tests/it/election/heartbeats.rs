//! The leader's last heartbeat, as others see it.

use std::time::Duration;

use frazil_election::{Callbacks, Elector, LeaderInfo};

use crate::election::callbacks::leads;
use crate::stage::{Stage, on_every_store, settings, soon};

on_every_store! {
    observers_see_the_last_heartbeat,
    an_elector_sees_the_last_heartbeat_and_takes_it_for_no_change,
}

/// Long enough for no look to be asked for by the end of a leadership.
fn patient(instance: &str) -> frazil_election::Settings {
    let mut settings = settings(instance);
    settings.ttl = Duration::from_secs(20);
    settings
}

async fn observers_see_the_last_heartbeat(stage: Stage) {
    let client = stage.client(patient("a").ttl).await;
    let leader = client.elections.candidate("job", patient("a")).unwrap();
    let _leads = soon(leader.campaign()).await.unwrap();
    let elections = stage.elections().await;
    let mut observer = elections.observe("job").unwrap();
    let first = soon(observer.changed()).await.expect("somebody leads");
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let is_later =
        |now: Option<LeaderInfo>| now.is_some_and(|now| now.renewed_ms > first.renewed_ms);
    soon(async {
        while !is_later(observer.fetch().await.unwrap()) {
            looks.tick().await;
        }
    })
    .await;
    // Also where nobody waits for anything, as behind an address that says how things are.
    soon(async {
        while !is_later(observer.leader()) {
            looks.tick().await;
        }
    })
    .await;
}

async fn an_elector_sees_the_last_heartbeat_and_takes_it_for_no_change(stage: Stage) {
    let client = stage.client(patient("a").ttl).await;
    let candidate = client.elections.candidate("job", patient("a")).unwrap();
    let elector = Elector::start(candidate, Callbacks::new());
    leads(&elector).await;
    let mut leader = elector.leader();
    let first = soon(leader.wait_for(Option::is_some)).await.unwrap().clone().unwrap();
    leader.mark_unchanged();
    let mut looks = tokio::time::interval(Duration::from_millis(50));
    let renewed = || elector.leader().borrow().as_ref().map_or(0, |now| now.renewed_ms);
    soon(async {
        while renewed() <= first.renewed_ms {
            looks.tick().await;
        }
    })
    .await;
    assert!(!leader.has_changed().unwrap(), "a heartbeat is no other leader");
    soon(elector.stop()).await.unwrap();
}
