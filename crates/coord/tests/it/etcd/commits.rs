//! Commits by themselves: what they compare, what they are served for, and what they leave behind.

use std::time::Duration;

use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Choice, Leasing, Released};
use frazil_coord::{
    Act, Change, Changes, Commit, Committed, Entry, Found, Group, Nonce, Presence, PresenceChange,
    Present, Put, Record, Slot, Store, Token, Version, Watched,
};
use frazil_rig::Etcd;

use crate::etcd::crowd::requests;
use crate::etcd::world::{PATIENCE, any, claim, connect, extend, held, open, take};

const TTL: Duration = Duration::from_secs(30);

fn record(nonce: Option<Nonce>) -> Record {
    let now = unix_ms();
    Record {
        nonce,
        token: Token(now),
        holder: "test".into(),
        floor: 0,
        horizon: now,
        renewed: now,
        expires: None,
        released: false,
        info: std::collections::BTreeMap::new(),
    }
}

/// An acquisition of a slot as it was read.
fn acquisition(entry: &Entry, nonce: Nonce) -> Change {
    Change {
        slot: entry.slot.clone(),
        version: entry.version,
        nonce: entry.nonce(),
        present: Present::Nobody,
        record: record(Some(nonce)),
        presence_change: PresenceChange::For(TTL),
    }
}

fn commit(meta: Option<Version>, changes: Vec<Change>) -> Commit {
    Commit { act: Act::Acquire, meta, history: None, changes }
}

async fn entry(store: &dyn Store, slot: &Slot) -> Entry {
    store.read(std::slice::from_ref(slot)).await.unwrap().entries.remove(0)
}

async fn conflict(store: &dyn Store, commit: &Commit) -> Vec<Entry> {
    match store.commit(commit).await.unwrap() {
        Committed::Conflict(look) => look.entries,
        done => panic!("wanted a conflict, got {done:?}"),
    }
}

async fn done(store: &dyn Store, commit: &Commit) -> usize {
    match store.commit(commit).await.unwrap() {
        Committed::Done { index, look, .. } => {
            assert!(look.meta.is_some(), "an answer without meta");
            index
        }
        Committed::Conflict(look) => panic!("conflict: {look:?}"),
    }
}

fn claims(etcd: &Etcd) -> String {
    let keys = etcd.etcdctl(&["get", "--prefix", "--keys-only", "/frazil/"]).unwrap();
    keys.lines().filter(|key| key.contains("/claim/")).collect()
}

fn end_presence(etcd: &Etcd) {
    for lease in etcd.etcdctl(&["lease", "list"]).unwrap().lines().skip(1) {
        etcd.etcdctl(&["lease", "revoke", lease]).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_version_that_matches_is_not_enough_without_its_nonce() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let slot = Slot::worker(4);
    let (mine, other) = (Nonce::mint().unwrap(), Nonce::mint().unwrap());
    let change = acquisition(&entry(&store, &slot).await, mine);
    let foreign = Change { nonce: Some(other), ..change.clone() };
    conflict(&store, &commit(Some(meta), vec![foreign])).await;
    done(&store, &commit(Some(meta), vec![change])).await;

    for presence in [Presence::Held { expires_in: None }, Presence::Free] {
        let seen = entry(&store, &slot).await;
        assert_eq!(seen.presence, presence);
        for nonce in [Some(other), None] {
            let change = Change { nonce, ..acquisition(&seen, other) };
            let renewal = Change { present: Present::Holder, ..change.clone() };
            for change in [change, renewal] {
                let found = conflict(&store, &commit(None, vec![change])).await;
                assert_eq!(found, std::slice::from_ref(&seen));
            }
        }
        end_presence(&etcd);
    }
    let seen = entry(&store, &slot).await;
    done(&store, &commit(Some(meta), vec![acquisition(&seen, other)])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_commit_of_several_changes_is_served_once_while_a_slot_carries_its_nonce() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let nonce = Nonce::mint().unwrap();
    let slots = [Slot::worker(1), Slot::worker(2), Slot::worker(3)];
    let seen = store.read(&slots).await.unwrap().entries;
    let changes: Vec<_> = seen.iter().map(|entry| acquisition(entry, nonce)).collect();
    // The first is not possible: somebody else was faster.
    let faster = acquisition(&seen[0], Nonce::mint().unwrap());
    done(&store, &commit(Some(meta), vec![faster])).await;
    let any = commit(Some(meta), changes);
    assert_eq!(done(&store, &any).await, 1);

    for _ in 0..2 {
        let found = conflict(&store, &any).await;
        let carrier = found.iter().find(|entry| entry.nonce() == Some(nonce)).unwrap();
        assert_eq!(carrier.slot, slots[1]);
        // Also once its presence is over.
        end_presence(&etcd);
    }
    assert_eq!(held(&store).await, []);

    // Whoever takes the slot over removes the last trace of it.
    let lapsed = entry(&store, &slots[1]).await;
    let next = acquisition(&lapsed, Nonce::mint().unwrap());
    done(&store, &commit(Some(meta), vec![next])).await;
    assert_eq!(claims(&etcd), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_key_that_no_slot_bears_out_serves_again() {
    let etcd = Etcd::start().unwrap();
    let (store, namespace, meta) = open(&etcd.url()).await;
    for text in ["w/9", "nonsense"] {
        let claim = any(meta);
        let key = format!("/frazil/{namespace}/claim/{}", claim.nonce);
        etcd.etcdctl(&["put", &key, text]).unwrap();
        let tenure = take(&store, &claim).await;
        assert_eq!(
            etcd.etcdctl(&["get", "--print-value-only", &key]).unwrap().trim(),
            tenure.slot.to_string()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn releases_leave_no_claim_keys_behind() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    for _ in 0..10 {
        let tenure = take(&store, &any(meta)).await;
        assert!(claims(&etcd).contains(&tenure.nonce.to_string()));
        assert_eq!(store.release(&tenure, 0).await.unwrap(), Released::Done);
    }
    assert_eq!(claims(&etcd), "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_is_one_transaction_and_one_keepalive() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let mut tenure = take(&store, &any(meta)).await;
    let before = requests(&etcd);
    for _ in 0..10 {
        tenure = extend(&store, &tenure).await;
    }
    assert_eq!(requests(&etcd) - before, 20);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_that_was_used_and_lost_its_record_is_not_the_one_that_was_read() {
    let etcd = Etcd::start().unwrap();
    let (store, namespace, meta) = open(&etcd.url()).await;
    let slot = Slot::worker(5);
    let unused = acquisition(&entry(&store, &slot).await, Nonce::mint().unwrap());
    let tenure = take(&store, &claim(Choice::This(slot.clone(), Version(0)), meta)).await;
    assert_eq!(store.release(&tenure, 0).await.unwrap(), Released::Done);
    etcd.etcdctl(&["del", &format!("/frazil/{namespace}/{slot}")]).unwrap();
    let found = conflict(&store, &commit(Some(meta), vec![unused])).await;
    assert_eq!(found[0].found, Found::Lost);
    // An operator who has seen that can write a record.
    let put = store.put(&slot, found[0].version, &record(None)).await.unwrap();
    assert!(matches!(put, Put::Done(_)), "{put:?}");
    assert_eq!(store.put(&slot, found[0].version, &record(None)).await, Ok(Put::Conflict));
}

#[tokio::test(flavor = "multi_thread")]
async fn many_slots_are_read_at_once() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let tenure = take(&store, &any(meta)).await;
    let slots: Vec<_> = (0..1024).map(Slot::worker).collect();
    let entries = store.read(&slots).await.unwrap().entries;
    assert!(entries.iter().map(|entry| &entry.slot).eq(&slots));
    let mut used = entries.iter().filter(|entry| entry.found != Found::New);
    assert_eq!(used.next().map(|entry| &entry.slot), Some(&tenure.slot));
    assert_eq!(used.next(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_election_that_nobody_is_present_in_can_be_forgotten() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) = open(&etcd.url()).await;
    let slot = Slot::named(Group::Elections, "old").unwrap();
    let tenure = take(&store, &claim(Choice::This(slot.clone(), Version(0)), meta)).await;
    assert_eq!(store.forget(&slot, tenure.version).await, Ok(Put::Conflict), "it is held");
    store.release(&tenure, 0).await.unwrap();
    let released = entry(&store, &slot).await.version;
    assert_eq!(store.forget(&slot, tenure.version).await, Ok(Put::Conflict), "it has moved on");
    assert!(matches!(store.forget(&slot, released).await, Ok(Put::Done(_))));
    assert_eq!(store.list(Group::Elections).await.unwrap(), []);
    let again = take(&store, &claim(Choice::This(slot, Version(0)), meta)).await;
    assert!(again.token > tenure.token);

    let worker = take(&store, &any(meta)).await;
    store.release(&worker, 0).await.unwrap();
    let released = entry(&store, &worker.slot).await.version;
    assert_eq!(store.forget(&worker.slot, released).await, Ok(Put::Conflict), "it is a worker");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_watch_of_one_slot_is_silent_about_others() {
    let etcd = Etcd::start().unwrap();
    let (store, namespace, meta) = open(&etcd.url()).await;
    let other = connect(&etcd.url(), &namespace).await;
    let named = |name| Slot::named(Group::Elections, name).unwrap();
    let (watched, longer) = (named("a"), named("ab"));
    let watch = async |slot: &Slot| store.watch(&Watched::Slot(slot.clone())).await.unwrap();
    let (mut changes, mut others) = (watch(&watched).await, watch(&longer).await);
    for _ in 0..3 {
        let version = entry(&other, &longer).await.version;
        let tenure = take(&other, &claim(Choice::This(longer.clone(), version), meta)).await;
        announced(&mut others).await;
        other.release(&tenure, 0).await.unwrap();
        announced(&mut others).await;
    }
    let silence = tokio::time::timeout(Duration::ZERO, changes.next()).await;
    assert!(silence.is_err(), "another slot was announced");
    let tenure = take(&other, &claim(Choice::This(watched.clone(), Version(0)), meta)).await;
    announced(&mut changes).await;
    other.release(&tenure, 0).await.unwrap();
    announced(&mut changes).await;
    let version = entry(&other, &watched).await.version;
    assert!(matches!(other.forget(&watched, version).await, Ok(Put::Done(_))));
    announced(&mut changes).await;
}

async fn announced(changes: &mut Changes) {
    tokio::time::timeout(PATIENCE, changes.next()).await.unwrap().expect("the watch goes on");
}
