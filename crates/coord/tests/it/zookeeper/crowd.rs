//! A thousand at once.
#![expect(clippy::print_stdout, reason = "what was measured is for people to read")]

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::internal::stores::zookeeper::ZooKeeperStore;
use frazil_coord::internal::time::boot_time;
use frazil_coord::internal::{Acquired, Choice, Leasing, Released, Tenure};
use frazil_coord::{Act, Group, Metered, Outcome, Store, Version};
use frazil_rig::ZooKeeper;
use tokio::task::JoinSet;

use crate::zookeeper::place::{Place, begin, claim};

const CROWD: u32 = 1024;
/// A look and a multi, and as many again for those that others were faster than.
const REQUESTS_MEAN: f64 = 4.0;
/// Over 5 s on an idle machine with two cores something is wrong; tests share theirs.
const LIMIT: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_clients_at_once_get_a_thousand_slots_in_few_operations() {
    let server = ZooKeeper::start().unwrap();
    let place = Place::new(&server.address()).await;
    let stores = connect_all(&place, &server).await;
    let meta = begin(&*stores[0]).await;
    let tenures = claim_all(&server, &stores, meta, "never used").await;
    let (mut releasing, began) = (JoinSet::new(), boot_time());
    for (store, tenure) in stores.iter().zip(tenures) {
        let store = store.clone();
        releasing.spawn(async move { store.release(&tenure, tenure.floor).await });
    }
    for released in releasing.join_all().await {
        assert_eq!(released.unwrap(), Released::Done);
    }
    println!("released {CROWD} in {:?}", boot_time() - began);
    claim_all(&server, &stores, meta, "used before").await;

    let began = boot_time();
    let listed = stores[0].list(Group::Workers).await.unwrap();
    println!("listed {} in {:?}", listed.len(), boot_time() - began);
    let all = claim(meta, Choice::Any { first: 0, last: CROWD - 1, favourite: None });
    let Acquired::Full(census) = stores[0].acquire(&all).await.unwrap() else { panic!() };
    assert_eq!((census.held, census.blocked, census.poisoned), (CROWD, 0, 0));
}

async fn connect_all(place: &Place, server: &ZooKeeper) -> Vec<Arc<ZooKeeperStore>> {
    let (mut connecting, began) = (JoinSet::new(), boot_time());
    for _ in 0..CROWD {
        let (place, address) = (place.clone(), server.address());
        let options = "session=60s&timeout=30s";
        connecting.spawn(async move { Arc::new(place.open(&address, options).await) });
    }
    let stores = connecting.join_all().await;
    println!("connected {CROWD} in {:?}", boot_time() - began);
    stores
}

async fn claim_all(
    server: &ZooKeeper,
    stores: &[Arc<ZooKeeperStore>],
    meta: Version,
    what: &str,
) -> Vec<Tenure> {
    let (received, began) = (received(server), boot_time());
    let mut claiming = JoinSet::new();
    for (index, store) in stores.iter().enumerate() {
        let store = store.clone();
        claiming.spawn(async move {
            let metered = Metered::new(store);
            let acquired = loop {
                let any = claim(meta, Choice::Any { first: 0, last: CROWD - 1, favourite: None });
                match metered.acquire(&any).await.unwrap() {
                    // On a busy machine it took longer than clocks may differ: asked anew, by the
                    // time that it is then, as a keeper does.
                    Acquired::ClockOff { .. } => {}
                    acquired => break acquired,
                }
            };
            let looks = metered.operations(Act::FreeSlots, Outcome::Done).count;
            (index, acquired, looks)
        });
    }
    let mut acquired = claiming.join_all().await;
    let took = boot_time() - began;
    let operations = self::received(server) - received;
    acquired.sort_by_key(|(index, ..)| *index);
    let looks_max = acquired.iter().map(|(_, _, looks)| *looks).max().unwrap();
    let tenures: Vec<_> = acquired
        .into_iter()
        .map(|(_, acquired, _)| match acquired {
            Acquired::Held(tenure) => tenure,
            other => panic!("{other:?}"),
        })
        .collect();
    let distinct: BTreeSet<_> = tenures.iter().map(|tenure| tenure.slot.number()).collect();
    assert_eq!(distinct.len(), tenures.len(), "{what}");
    let each = operations as f64 / f64::from(CROWD);
    println!(
        "{what}: {CROWD} claims in {took:?}, {each:.2} requests each, syncs and pings too; at most \
         {looks_max} looks for one"
    );
    assert!(took < LIMIT, "{what}: {took:?}");
    assert!(each <= REQUESTS_MEAN, "{what}: {each:.2} requests each");
    tenures
}

/// How many requests the server has had.
fn received(server: &ZooKeeper) -> u64 {
    let stats = server.four_letter_word("srvr").unwrap();
    let line = stats.lines().find_map(|line| line.strip_prefix("Received: "));
    line.and_then(|count| count.parse().ok()).unwrap()
}
