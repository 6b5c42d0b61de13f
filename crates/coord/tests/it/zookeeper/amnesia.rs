//! What was deleted or spoilt by hand.

use frazil_coord::internal::{Acquired, Choice, Extended, FORMAT, Leasing, Released};
use frazil_coord::{ErrorKind, Found, Group, Loss, Put, Slot, Store, Version, Watched};

use crate::zookeeper::place::{Place, ask, begin, claim, meta, server, take};

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_cannot_be_read_is_lost_and_blocked() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    for (number, spoilt) in [(1, "not JSON"), (2, ""), (3, "{\"token\":1}"), (4, "\u{fffd}[[[[")] {
        let slot = Slot::worker(number);
        let free = claim(meta, Choice::This(slot.clone(), Version(0)));
        let tenure = take(&store, &free).await;
        let path = place.path(&format!("w/{number}"));
        place.control.set_data(&path, spoilt.as_bytes(), None).await.unwrap();
        let extended = store.extend(&tenure, &ask(0)).await.unwrap();
        assert_eq!(extended, Extended::Lost(Loss::Vanished), "{spoilt:?}");
        assert_eq!(store.release(&tenure, 0).await.unwrap(), Released::NotHeld);
        place.control.delete(&place.own(&slot), None).await.unwrap();

        let entries = store.list(Group::Workers).await.unwrap();
        let entry = entries.iter().find(|entry| entry.slot == slot).unwrap();
        assert_eq!(entry.found, Found::Lost);
        let this = claim(meta, Choice::This(slot.clone(), entry.version));
        let any = claim(meta, Choice::Any { first: number, last: number, favourite: None });
        for claim in [this, any] {
            let acquired = store.acquire(&claim).await.unwrap();
            assert!(matches!(acquired, Acquired::Full(census) if census.blocked == 1));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_was_deleted_and_created_again_is_another_version() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let slot = Slot::worker(5);
    let tenure = take(&store, &claim(meta, Choice::This(slot.clone(), Version(0)))).await;
    assert_eq!(store.release(&tenure, 1).await.unwrap(), Released::Done);
    let before = store.list(Group::Workers).await.unwrap().remove(0);
    let Found::Known(record) = before.found else { panic!("{before:?}") };
    let count = async || {
        let record = place.control.exists(&place.path("w/5")).await.unwrap().unwrap();
        let born = place.control.exists(&place.path("born/w-5")).await.unwrap().unwrap();
        (record.version, born.version)
    };
    let (written, created) = count().await;

    place.control.delete(&place.path("w/5"), None).await.unwrap();
    let Put::Done(first) = store.put(&slot, Version(0), &record).await.unwrap() else { panic!() };
    let Put::Done(_) = store.put(&slot, first, &record).await.unwrap() else { panic!() };
    let (written_again, created_again) = count().await;
    assert_eq!(written, written_again, "the count of writes alone would not tell them apart");
    assert!(created_again > created);
    let outdated = claim(meta, Choice::This(slot.clone(), before.version));
    assert_eq!(store.acquire(&outdated).await.unwrap(), Acquired::Taken);
    assert_eq!(store.put(&slot, before.version, &record).await.unwrap(), Put::Conflict);
}

#[tokio::test(flavor = "multi_thread")]
async fn meta_that_is_spoilt_or_newer_is_said_to_be() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let version = begin(&store).await;
    let mut newer = meta();
    newer.format = FORMAT + 1;
    assert!(matches!(store.put_meta(Some(version), &newer).await, Ok(Put::Done(_))));
    assert_eq!(store.meta().await.unwrap_err().kind(), ErrorKind::NewerFormat);
    let strange = format!("{{\"format\":{},\"what\":[]}}", FORMAT + 7);
    for (spoilt, kind) in [
        (strange.as_str(), ErrorKind::NewerFormat),
        ("{\"format\":1}", ErrorKind::Corrupt),
        ("", ErrorKind::Corrupt),
    ] {
        place.control.set_data(&place.path("meta"), spoilt.as_bytes(), None).await.unwrap();
        assert_eq!(store.meta().await.unwrap_err().kind(), kind, "{spoilt}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wiped_namespace_can_be_used_again_by_the_same_object() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let meta = begin(&store).await;
    let any = |meta| claim(meta, Choice::Any { first: 0, last: 63, favourite: None });
    let tenure = take(&store, &any(meta)).await;
    wipe(&place).await;
    let extended = store.extend(&tenure, &ask(0)).await.unwrap();
    assert_eq!(extended, Extended::Lost(Loss::Vanished));
    assert!(store.list(Group::Workers).await.unwrap().is_empty());
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    let meta = begin(&store).await;
    take(&store, &any(meta)).await;
    assert_eq!(changes.next().await, Some(()));
}

/// Deletes everything, the parents too.
async fn wipe(place: &Place) {
    for parent in ["w", "e", "s", "k", "own", "born"] {
        let parent = place.path(parent);
        for child in place.control.get_children(&parent).await.unwrap() {
            place.control.delete(&format!("{parent}/{child}"), None).await.unwrap();
        }
        place.control.delete(&parent, None).await.unwrap();
    }
    place.control.delete(&place.path("meta"), None).await.unwrap();
    place.control.delete(place.path("").trim_end_matches('/'), None).await.unwrap();
}
