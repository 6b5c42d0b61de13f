//! Nodes in the form in which the version before wrote them: what it wrote goes on, and it can
//! share the store for a while.

use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released};
use frazil_coord::{Found, Group, Presence, Record, Slot, Store};
use frazil_zookeeper::CreateMode;

use crate::zookeeper::place::{ANYONE, Place, ask, claim, server, take};

const META: &str = r#"{"format":1,"incarnation":"00000000000000000000000000000abc","layout":"tests","first_worker":0,"last_worker":3,"window_ms":600000,"quarantine":0,"created":1700000000000}"#;
const RELEASED: &str = r#"{"token":1700000000001,"nonce":null,"holder":"old","floor":0,"horizon":1700000000500,"renewed":1700000000001}"#;

/// A record that is held, of a holder with this nonce.
fn held(nonce: &str, horizon: u64) -> String {
    format!(
        r#"{{"token":1700000000002,"nonce":"{nonce}","holder":"old","floor":1700000000500,"horizon":{horizon},"renewed":1700000000002,"info":{{"host":"here"}}}}"#
    )
}

/// Writes a slot as the version before did: created empty and then set, with its mark of use.
async fn write(place: &Place, number: u32, record: &str, owner: Option<&str>) {
    let (persistent, ephemeral) = (CreateMode::Persistent, CreateMode::Ephemeral);
    let path = place.path(&format!("w/{number}"));
    place.control.create(&path, b"", persistent, &ANYONE).await.unwrap();
    place.control.set_data(&path, record.as_bytes(), None).await.unwrap();
    place
        .control
        .create(&place.path(&format!("born/w-{number}")), b"", persistent, &ANYONE)
        .await
        .unwrap();
    if let Some(nonce) = owner {
        let own = place.own(&Slot::worker(number));
        place.control.create(&own, nonce.as_bytes(), ephemeral, &ANYONE).await.unwrap();
    }
}

fn known(found: &Found) -> &Record {
    match found {
        Found::Known(record) => record,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_version_before_wrote_goes_on() {
    let place = Place::new(&server().address()).await;
    let store = place.open(&server().address(), "").await;
    let nonce = "0000000000000000000000000000def0";
    let persistent = CreateMode::Persistent;
    place.control.create(&place.path("meta"), b"", persistent, &ANYONE).await.unwrap();
    place.control.set_data(&place.path("meta"), META.as_bytes(), None).await.unwrap();
    let horizon = unix_ms() + 60_000;
    write(&place, 0, RELEASED, None).await;
    write(&place, 1, &held(nonce, horizon), Some(nonce)).await;
    write(&place, 2, &held(nonce, 1_700_000_000_900), None).await;

    let meta = store.meta().await.unwrap().unwrap();
    assert_eq!((meta.value.last_worker, meta.value.window_ms), (3, 600_000));
    let listed = store.list(Group::Workers).await.unwrap();
    let presence: Vec<_> = listed.iter().map(|entry| entry.presence != Presence::Free).collect();
    assert_eq!(presence, [false, true, false]);
    assert!(!known(&listed[0].found).released, "the version before did not say so");

    // The holder goes on with the program that is newer than its record, from another session.
    let entry = &listed[1];
    let repeated = claim(meta.version, Choice::This(entry.slot.clone(), entry.version));
    let repeated = frazil_coord::internal::Claim { nonce: nonce.parse().unwrap(), ..repeated };
    let tenure = take(&store, &repeated).await;
    assert_eq!((tenure.token.0, tenure.horizon), (1_700_000_000_002, horizon));
    let Extended::Held(tenure) = store.extend(&tenure, &ask(horizon + 1000)).await.unwrap() else {
        panic!()
    };
    assert_eq!(store.release(&tenure, horizon - 1).await.unwrap(), Released::Done);
    let written = place.control.get_data(&place.path("w/1")).await.unwrap().0;
    let released: Record = serde_json::from_slice(&written).unwrap();
    assert_eq!((released.released, released.nonce, released.horizon), (true, None, horizon - 1));

    // Those that were left are taken above what they had.
    for (index, floor) in [(0, 1_700_000_000_500), (2, 1_700_000_000_900)] {
        let choice = Choice::This(listed[index].slot.clone(), listed[index].version);
        let tenure = take(&store, &claim(meta.version, choice)).await;
        assert_eq!(tenure.floor, floor);
        assert!(tenure.token > known(&listed[index].found).token);
    }
    let any = claim(meta.version, Choice::Any { first: 0, last: 2, favourite: None });
    let Acquired::Full(census) = store.acquire(&any).await.unwrap() else { panic!() };
    assert_eq!((census.held, census.blocked), (2, 1));
}
