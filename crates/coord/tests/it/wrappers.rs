//! Wrapped stores keep the contract, and do what they add to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use frazil_conformance::{self as conformance, Chances, Faulty, InMemory};
use frazil_coord::Copied;
use frazil_coord::MemoryStore;
use frazil_coord::internal::rules;
use frazil_coord::internal::{Acquired, Choice, Claim, FORMAT, Leasing, Released};
use frazil_coord::{
    Act, Change, Commit, ErrorKind, Found, Group, History, Meta, Metered, Namespace, Nonce,
    Operations, Outcome, PresenceChange, Present, Put, Slot, Store, StoreUrl, Timing, Token,
    Version,
};

fn election(name: &str) -> Slot {
    Slot::named(Group::Elections, name).unwrap()
}

async fn create_meta(store: &dyn Store) -> Version {
    let meta = Meta {
        format: FORMAT,
        incarnation: Nonce::from_bits(1),
        layout: "test".into(),
        first_worker: 0,
        last_worker: 3,
        window_ms: 600_000,
        quarantine: 0,
        token_floor: Token::default(),
        created: 1,
    };
    match store.put_meta(None, &meta).await.unwrap() {
        Put::Done(version) => version,
        Put::Conflict => panic!("meta exists"),
    }
}

fn claim(slot: &Slot, version: Version, meta: Version, nonce: u128) -> Claim {
    Claim {
        choice: Choice::This(slot.clone(), version),
        nonce: Nonce::from_bits(nonce),
        holder: "test".into(),
        info: BTreeMap::new(),
        ttl: Duration::from_secs(30),
        now: 1_000_000,
        ask: 1_001_000,
        window_ms: 600_000,
        quarantine: 0,
        meta,
    }
}

#[tokio::test]
async fn a_metered_store_conforms() {
    conformance::run(&InMemory::wrapped(|store| Arc::new(Metered::new(store)))).await.unwrap();
}

#[tokio::test]
async fn a_faulty_store_without_faults_conforms() {
    let wrap = |store| Arc::new(Faulty::new(store, Chances::default(), 1)) as Arc<dyn Store>;
    conformance::run(&InMemory::wrapped(wrap)).await.unwrap();
}

#[tokio::test]
async fn what_a_store_finds_about_itself_is_not_lost_in_a_wrapper() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let url = StoreUrl::file(directory.path().to_str().unwrap());
    let namespace = Namespace::default();
    let open = || frazil_coord::open(&url, &namespace, Copied::Refuse);
    drop(open().await.unwrap());
    let seen_by_all = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(directory.path().join("default"), seen_by_all).unwrap();
    let store = open().await.unwrap();
    let timing = Timing::default();
    let found = store.diagnose(&timing).await.unwrap();
    // Its fix is apart, which what is made of the warnings alone has not.
    assert!(found.iter().any(|finding| finding.fix.starts_with("chmod 700")), "{found:?}");
    let wrapped: [Arc<dyn Store>; 2] = [
        Arc::new(Metered::new(store.clone())),
        Arc::new(Faulty::new(store, Chances::default(), 1)),
    ];
    for wrapper in wrapped {
        assert_eq!(wrapper.diagnose(&timing).await.as_ref(), Ok(&found), "{wrapper:?}");
    }
}

#[tokio::test]
async fn operations_are_counted_by_act_and_outcome() {
    let lossy = Chances { request_lost: 1000, ..Chances::default() };
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let metered = Metered::new(memory.clone());
    let meta = create_meta(&metered).await;
    let slot = Slot::worker(1);
    let Acquired::Held(tenure) = metered.acquire(&claim(&slot, Version(0), meta, 1)).await.unwrap()
    else {
        panic!("not held")
    };
    for _ in 0..3 {
        // What is seen to be taken is not even tried.
        let taken = metered.acquire(&claim(&slot, Version(0), meta, 2)).await.unwrap();
        assert_eq!(taken, Acquired::Taken);
    }
    assert_eq!(metered.release(&tenure, 0).await.unwrap(), Released::Done);
    // The second commit is refused, and shows that the first one was carried out.
    assert_eq!(metered.release(&tenure, 0).await.unwrap(), Released::Done);
    let election = election("over");
    assert_eq!(metered.forget(&election, Version(7)).await.unwrap(), Put::Conflict);
    let count = |act, outcome| metered.operations(act, outcome).count;
    assert_eq!(count(Act::PutMeta, Outcome::Done), 1);
    assert_eq!(count(Act::Read, Outcome::Done), 4);
    assert_eq!(count(Act::Acquire, Outcome::Done), 1);
    assert_eq!(count(Act::Acquire, Outcome::Conflict), 0);
    assert_eq!(count(Act::Release, Outcome::Done), 1);
    assert_eq!(count(Act::Release, Outcome::Conflict), 1);
    assert_eq!(count(Act::Forget, Outcome::Conflict), 1);
    assert!(metered.operations(Act::Read, Outcome::Done).spent > Duration::ZERO);
    let all: u64 = metered.snapshot().iter().map(|operations| operations.count).sum();
    assert_eq!(all, 9, "the snapshot misses something");
    let conflicts = |o: &&Operations| o.outcome == Outcome::Conflict;
    let can_conflict: Vec<Act> =
        metered.snapshot().iter().filter(conflicts).map(|o| o.act).collect();
    assert!(!can_conflict.contains(&Act::List) && can_conflict.contains(&Act::Acquire));

    let failing = Metered::new(Arc::new(Faulty::new(memory, lossy, 3)));
    for _ in 0..40 {
        failing.list(Group::Workers).await.unwrap_err();
    }
    let unavailable = failing.operations(Act::List, Outcome::Failed(ErrorKind::Unavailable)).count;
    let unknown = failing.operations(Act::List, Outcome::Failed(ErrorKind::Unknown)).count;
    assert_eq!(unavailable + unknown, 40);
    assert!(unavailable > 0 && unknown > 0, "{unavailable} and {unknown}");
}

#[tokio::test]
async fn a_lost_reply_to_a_claim_is_resolved_by_repeating_it() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let meta = create_meta(&*memory).await;
    let any = Choice::Any { first: 0, last: 3, favourite: None };
    let this = Choice::This(Slot::worker(3), Version(0));
    for (nonce, choice) in [(9, any), (10, this)] {
        let first = Claim { choice, ..claim(&Slot::worker(0), Version(0), meta, nonce) };
        let again = losing_the_commit(&memory, &first).await;
        let Acquired::Held(tenure) = memory.acquire(&again).await.unwrap() else {
            panic!("{again:?} was not resolved")
        };
        let entries = memory.list(Group::Workers).await.unwrap();
        let ours = entries.iter().filter(|entry| entry.nonce() == Some(first.nonce));
        assert_eq!(ours.map(|entry| &entry.slot).collect::<Vec<_>>(), [&tenure.slot]);
    }
}

/// Makes a claim whose commit is carried out and whose reply is lost; the claim to be repeated.
async fn losing_the_commit(memory: &Arc<dyn Store>, claim: &Claim) -> Claim {
    // Which seed lets the request before the commit through is found out by trying.
    for seed in 0.. {
        let deaf =
            Faulty::new(memory.clone(), Chances { reply_lost: 500, ..Chances::default() }, seed);
        let answer = deaf.acquire(claim).await;
        let is_taken = memory.list(Group::Workers).await.unwrap();
        let is_taken = is_taken.iter().any(|entry| entry.nonce() == Some(claim.nonce));
        match answer {
            _ if !is_taken => {}
            Ok(Acquired::Unsure(slot, version)) => {
                return Claim { choice: Choice::This(slot, version), ..claim.clone() };
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Unknown, "{error}");
                return claim.clone();
            }
            Ok(other) => panic!("seed {seed}: the reply was heard: {other:?}"),
        }
    }
    unreachable!("the seeds do not end")
}

#[tokio::test]
async fn a_late_copy_arrives_within_the_calls_that_follow() {
    let memory = MemoryStore::new();
    let meta = create_meta(&memory).await;
    let slow = Faulty::new(
        Arc::new(memory.clone()),
        Chances { request_lost: 1000, late: 1000, ..Chances::default() },
        11,
    );
    let slot = Slot::worker(2);
    let change = Change {
        slot: slot.clone(),
        version: Version(0),
        nonce: None,
        present: Present::Nobody,
        record: rules::acquire(
            &Found::New,
            &claim(&slot, Version(0), meta, 4),
            &History::default(),
        )
        .unwrap(),
        presence_change: PresenceChange::For(Duration::from_secs(30)),
    };
    let commit =
        Commit { act: Act::Acquire, meta: Some(meta), history: None, changes: vec![change] };
    let error = slow.commit(&commit).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unknown, "what may still arrive has not failed");
    assert!(memory.list(Group::Workers).await.unwrap().is_empty());
    for _ in 0..48 {
        slow.meta().await.unwrap_err();
    }
    assert_eq!(memory.list(Group::Workers).await.unwrap().len(), 1);
    assert_eq!(slow.faults().late, 1);
}

#[tokio::test]
async fn a_slot_that_was_just_seen_free_is_not_read_again() {
    let memory: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let (meta, slot) = (create_meta(&*memory).await, election("job"));
    let look = memory.read(std::slice::from_ref(&slot)).await.unwrap();
    let metered = Metered::new(memory);
    let acquired = metered.acquire_seen(&claim(&slot, Version(0), meta, 5), Some(look)).await;
    assert!(matches!(acquired, Ok(Acquired::Held(_))), "{acquired:?}");
    let count = |act| metered.operations(act, Outcome::Done).count;
    assert_eq!((count(Act::Read), count(Act::Acquire)), (0, 1));
}
