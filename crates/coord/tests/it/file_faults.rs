//! What happens to files and to the processes that use them: death, freezing, full disks, damage,
//! copies, and people who tidy up.

mod commits;
mod desk;
mod holder;
mod owner;
mod replaced;
mod watches;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use frazil_coord::Copied;
use frazil_coord::internal::time::{boot_time, unix_ms};
use frazil_coord::internal::{Acquired, Choice, Claim, Extended, Leasing, Released};
use frazil_coord::{
    Changes, Error, ErrorKind, Found, Group, Loss, Put, Slot, Store, Version, Watched,
};
use frazil_rig::{full_disk, wait_until};

use self::desk::{ask, claim, entry, is_held, open, take, try_open};
use self::holder::{Holder, slot};

fn home() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// A file of the default namespace.
fn file(home: &Path, name: &str) -> PathBuf {
    home.join("default").join(name)
}

fn kind<T: std::fmt::Debug>(result: Result<T, Error>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[tokio::test]
async fn the_part_of_the_child() {
    holder::play().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_process_is_gone_at_once_and_its_successor_starts_above_it() {
    let home = home();
    let store = open(home.path()).await;
    let mut holder = Holder::start(home.path());
    assert!(is_held(&store, &slot()).await);
    let refused = store.acquire(&claim(&store, &slot(), holder.horizon).await).await;
    assert_eq!(refused, Ok(Acquired::Taken));

    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    holder.kill();
    let announced = async {
        loop {
            assert!(changes.next().await.is_some(), "the watch ended");
            if !is_held(&store, &slot()).await {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(5), announced).await.expect("nothing was announced");

    let early = store.acquire(&claim(&store, &slot(), unix_ms()).await).await.unwrap();
    let Acquired::Full(census) = early else { panic!("took what may be in use: {early:?}") };
    assert_eq!(census.next_floor, Some(holder.horizon));
    let tenure = take(&store, &slot(), holder.horizon).await;
    assert_eq!(tenure.floor, holder.horizon);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frozen_process_keeps_its_slot() {
    let home = home();
    let store = open(home.path()).await;
    let mut holder = Holder::start(home.path());
    holder.freeze();
    let frozen = boot_time();
    let tries = async || {
        let claim = claim(&store, &slot(), holder.horizon + 1).await;
        (store.acquire(&claim).await, is_held(&store, &slot()).await)
    };
    assert_eq!(tries().await, (Ok(Acquired::Taken), true));
    // Its time to live is 50 ms, and does not count: the kernel knows that the process lives.
    wait_until("its time to pass", Duration::from_secs(5), || {
        boot_time() > frozen + Duration::from_millis(150)
    })
    .unwrap();
    assert_eq!(tries().await, (Ok(Acquired::Taken), true));
    let only = Choice::Any { first: 7, last: 7, favourite: Some(7) };
    let any = Claim { choice: only, ..claim(&store, &slot(), holder.horizon + 1).await };
    let full = store.acquire(&any).await.unwrap();
    assert!(matches!(full, Acquired::Full(census) if census.held == 1), "{full:?}");
    holder.kill();
    take(&store, &slot(), holder.horizon).await;
}

#[tokio::test]
async fn a_full_disk_is_an_outage_and_damages_nothing() {
    let disk = full_disk(1 << 20).unwrap();
    let store = open(disk.path()).await;
    let now = unix_ms();
    let [kept, ending, new] = [0, 1, 2].map(Slot::worker);
    let (tenure, other) = (take(&store, &kept, now).await, take(&store, &ending, now).await);
    let mut before = entry(&store, &kept).await;
    let fresh = claim(&store, &new, now).await;
    disk.fill().unwrap();

    for _ in 0..3 {
        assert_eq!(kind(store.extend(&tenure, &ask(now + 90_000)).await), ErrorKind::Unavailable);
        assert_eq!(entry(&store, &kept).await, before, "the record changed");
        assert_eq!(kind(store.acquire(&fresh).await), ErrorKind::Unavailable);
        assert!(entry(&store, &new).await.is_none(), "a failed claim left something behind");
    }
    // Whoever leaves is gone, though the horizon cannot come down.
    assert_eq!(kind(store.release(&other, now).await), ErrorKind::Unavailable);
    assert!(!is_held(&store, &ending).await);
    let left = entry(&store, &ending).await.unwrap().found;
    assert!(matches!(left, Found::Known(record) if record.horizon == other.horizon));

    disk.make_room().unwrap();
    let extended = store.extend(&tenure, &ask(now + 90_000)).await.unwrap();
    assert!(matches!(extended, Extended::Held(held) if held.horizon == now + 90_000));
    assert!(matches!(store.acquire(&fresh).await, Ok(Acquired::Held(_))));
    assert_eq!(store.release(&tenure, now).await, Ok(Released::Done));
    before = entry(&store, &kept).await;
    assert!(matches!(before.unwrap().found, Found::Known(record) if record.horizon == now));
}

#[tokio::test]
async fn a_damaged_record_is_lost_and_never_new() {
    let home = home();
    let store = open(home.path()).await;
    let now = unix_ms();
    let tenure = take(&store, &slot(), now).await;
    let path = file(home.path(), "w/7");
    let whole = fs::read(&path).unwrap();
    let seed = now;
    println!("seed {seed}");
    let mut noise = seed;
    let mut random = move || {
        noise =
            noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        noise.to_le_bytes()[7]
    };
    // All that is left out is the line's end.
    let mut damaged: Vec<Vec<u8>> = (0..whole.len() - 1).map(|n| whole[..n].to_vec()).collect();
    damaged.extend((0..200).map(|n| (0..=n).map(|_| random()).collect()));
    damaged.push(b"{}".to_vec());
    damaged.push(b"null".to_vec());
    damaged.push(vec![b' '; (1 << 20) + 10]);
    for (case, bytes) in damaged.iter().enumerate() {
        fs::write(&path, bytes).unwrap();
        let seen = entry(&store, &slot()).await.unwrap_or_else(|| panic!("{case} is not listed"));
        assert_eq!(seen.found, Found::Lost, "case {case}: {bytes:?}");
        let extended = store.extend(&tenure, &ask(now + 90_000)).await;
        assert_eq!(extended, Ok(Extended::Lost(Loss::Vanished)), "case {case}");
        assert_eq!(store.release(&tenure, now).await, Ok(Released::NotHeld), "case {case}");
        for version in [seen.version, Version(0)] {
            let choice = Choice::This(slot(), version);
            let claim = Claim { choice, ..claim(&store, &slot(), now).await };
            let got = store.acquire(&claim).await.unwrap();
            assert!(matches!(got, Acquired::Full(_) | Acquired::Taken), "case {case}: {got:?}");
        }
        assert_eq!(fs::read(&path).unwrap(), *bytes, "case {case}: what was damaged was replaced");
    }
    // An operator can put it right, by naming what is there.
    let seen = entry(&store, &slot()).await.unwrap();
    let repaired: serde_json::Value = serde_json::from_slice(&whole).unwrap();
    let repaired = serde_json::from_value(repaired).unwrap();
    assert!(matches!(store.put(&slot(), seen.version, &repaired).await, Ok(Put::Done(_))));
    take(&store, &slot(), tenure.horizon).await;
}

#[tokio::test]
async fn a_record_that_is_gone_is_lost() {
    let home = home();
    let store = open(home.path()).await;
    let tenure = take(&store, &slot(), unix_ms()).await;
    store.release(&tenure, 1).await.unwrap();
    fs::remove_file(file(home.path(), "w/7")).unwrap();
    assert_eq!(entry(&store, &slot()).await.unwrap().found, Found::Lost);
}

#[tokio::test]
async fn damaged_meta_is_corrupt_and_newer_meta_is_newer() {
    let home = home();
    let store = open(home.path()).await;
    let now = unix_ms();
    let tenure = take(&store, &slot(), now).await;
    let next = claim(&store, &Slot::worker(1), now).await;
    let path = file(home.path(), "meta");
    let whole = fs::read_to_string(&path).unwrap();
    let newer = whole.replace("\"format\":1", "\"format\":2");
    assert_ne!(whole, newer);
    // Nothing else is known of a newer format.
    for text in [newer.as_str(), r#"{"format":9,"all":"else","is":["unknown"]}"#] {
        fs::write(&path, text).unwrap();
        assert_eq!(kind(store.meta().await), ErrorKind::NewerFormat);
        assert_eq!(kind(store.acquire(&next).await), ErrorKind::NewerFormat);
    }
    for text in ["", "{", "null", "\u{7f}\u{0}", &whole[..whole.len() / 2]] {
        fs::write(&path, text).unwrap();
        assert_eq!(kind(store.meta().await), ErrorKind::Corrupt, "{text:?}");
        assert_eq!(kind(store.acquire(&next).await), ErrorKind::Corrupt, "{text:?}");
        let extended = store.extend(&tenure, &ask(now + 90_000)).await;
        assert_eq!(kind(extended), ErrorKind::Corrupt, "{text:?}");
        let put = store.put_meta(None, &desk::meta()).await;
        assert_eq!(kind(put), ErrorKind::Corrupt, "{text:?}");
    }
    fs::write(&path, whole).unwrap();
    assert!(matches!(store.extend(&tenure, &ask(now)).await, Ok(Extended::Held(_))));
}

#[tokio::test]
async fn a_copied_directory_is_refused_until_it_is_adopted() {
    let home = home();
    let (original, copy) = (home.path().join("original"), home.path().join("copy"));
    let store = open(&original).await;
    let tenure = take(&store, &slot(), unix_ms()).await;
    let cp = Command::new("cp").arg("-a").args([&original, &copy]).status().unwrap();
    assert!(cp.success());
    assert_eq!(kind(try_open(&copy, Copied::Refuse).await), ErrorKind::Unsafe);
    // Looking at it does not make it right.
    assert_eq!(kind(try_open(&copy, Copied::Refuse).await), ErrorKind::Unsafe);
    try_open(&copy, Copied::Adopt).await.unwrap();
    let adopted = try_open(&copy, Copied::Refuse).await.unwrap();
    let found = entry(&adopted, &slot()).await.unwrap().found;
    assert!(matches!(found, Found::Known(record) if record.horizon == tenure.horizon));
    try_open(&original, Copied::Refuse).await.unwrap();

    fs::write(copy.join("default/identity"), "").unwrap();
    assert_eq!(kind(try_open(&copy, Copied::Refuse).await), ErrorKind::Unsafe);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_may_open_a_new_directory_at_once() {
    let home = home();
    let mut opening = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let path = home.path().to_owned();
        opening.spawn(async move { try_open(&path, Copied::Refuse).await });
    }
    for opened in opening.join_all().await {
        opened.unwrap();
    }
    let left: Vec<_> = fs::read_dir(home.path().join("default")).unwrap().collect();
    assert_eq!(left.len(), 1 + Group::ALL.len(), "drafts were left behind: {left:?}");
}

#[tokio::test]
async fn a_lock_file_replaced_behind_its_holder_never_makes_two_holders() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let lock = file(home.path(), "w/.7.lock");
    let mut now = unix_ms();
    for replace in [true, false] {
        // Nobody came: the holder notices, and holds the new file.
        let mut tenure = take(&a, &slot(), now).await;
        for turn in 0..2 {
            fs::remove_file(&lock).unwrap();
            if replace {
                fs::write(&lock, "used\n").unwrap();
            }
            assert!(!is_held(&b, &slot()).await, "the fault did not happen");
            if turn == 0 {
                let extended = a.extend(&tenure, &ask(tenure.horizon)).await.unwrap();
                let Extended::Held(held) = extended else { panic!("{extended:?}") };
                tenure = held;
                assert!(is_held(&b, &slot()).await, "the holder did not notice");
                let later = claim(&b, &slot(), tenure.horizon).await;
                assert_eq!(b.acquire(&later).await, Ok(Acquired::Taken));
            }
        }
        // Somebody came: above all that the first may use, and the first cannot go on.
        let early = b.acquire(&claim(&b, &slot(), now).await).await.unwrap();
        assert!(matches!(early, Acquired::Full(_)), "{early:?}");
        let new = take(&b, &slot(), tenure.horizon).await;
        assert_eq!(new.floor, tenure.horizon);
        let extended = a.extend(&tenure, &ask(tenure.horizon + 50_000)).await.unwrap();
        let superseded = Loss::Superseded { token: new.token, holder: "test".into() };
        assert_eq!(extended, Extended::Lost(superseded));
        assert_eq!(a.release(&tenure, now).await, Ok(Released::NotHeld));
        assert!(is_held(&a, &slot()).await);
        let found = entry(&a, &slot()).await.unwrap().found;
        assert!(matches!(found, Found::Known(record) if record.horizon == new.horizon));
        assert_eq!(b.release(&new, new.floor).await, Ok(Released::Done));
        now = new.floor;
    }
}

#[tokio::test]
async fn a_release_after_the_lock_file_was_replaced_does_not_touch_the_successor() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let old = take(&a, &slot(), unix_ms()).await;
    fs::remove_file(file(home.path(), "w/.7.lock")).unwrap();
    let new = take(&b, &slot(), old.horizon).await;
    assert_eq!(a.release(&old, old.floor).await, Ok(Released::NotHeld));
    let found = entry(&b, &slot()).await.unwrap().found;
    assert!(matches!(found, Found::Known(record) if record.horizon == new.horizon));
}

#[tokio::test]
async fn no_name_is_in_the_place_of_another_ones_lock() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let named = |name| Slot::named(Group::Elections, name).unwrap();
    let now = unix_ms();
    let first = take(&a, &named("x"), now).await;
    for name in ["x.lock", "x.draft", "x.lock.lock"] {
        take(&b, &named(name), now).await;
    }
    assert_eq!(b.list(Group::Elections).await.unwrap().len(), 4);
    let taken = b.acquire(&claim(&b, &named("x"), first.horizon).await).await;
    assert_eq!(taken, Ok(Acquired::Taken));
    assert!(matches!(a.extend(&first, &ask(now)).await, Ok(Extended::Held(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn looking_at_a_free_slot_does_not_keep_others_from_taking_it() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let now = unix_ms();
    let first = take(&a, &slot(), now).await;
    a.release(&first, 1).await.unwrap();
    let stop = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let looking = tokio::spawn({
        let (b, stop) = (b.clone(), stop.clone());
        async move {
            let mut looks = 0_u64;
            // Relaxed: only the end of the test hangs on it.
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                b.list(Group::Workers).await.unwrap();
                looks += 1;
            }
            looks
        }
    });
    for _ in 0..300 {
        let tenure = take(&a, &slot(), now).await;
        assert_eq!(a.release(&tenure, 1).await, Ok(Released::Done));
    }
    stop.store(true, std::sync::atomic::Ordering::Relaxed);
    assert!(looking.await.unwrap() > 0);
}

#[tokio::test]
async fn a_refused_claim_announces_nothing() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let tenure = take(&a, &slot(), unix_ms()).await;
    let mut changes = b.watch(&Watched::Group(Group::Workers)).await.unwrap();
    for _ in 0..3 {
        // Else those who wait for the slot would wake each other for ever.
        let refused = b.acquire(&claim(&b, &slot(), tenure.horizon).await).await;
        assert_eq!(refused, Ok(Acquired::Taken));
    }
    let quiet = tokio::time::timeout(Duration::from_millis(100), changes.next()).await;
    assert!(quiet.is_err(), "a refusal was announced as a change");
    a.release(&tenure, 1).await.unwrap();
    let heard = tokio::time::timeout(Duration::from_secs(5), changes.next()).await;
    assert_eq!(heard, Ok(Some(())));
}

#[tokio::test]
async fn renewals_do_not_wake_those_who_wait() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let mut tenure = take(&a, &slot(), unix_ms()).await;
    let mut changes = b.watch(&Watched::Group(Group::Workers)).await.unwrap();
    let heard =
        async |changes: &mut Changes, time| tokio::time::timeout(time, changes.next()).await;
    for renewal in 0..5 {
        let extended = a.extend(&tenure, &ask(tenure.horizon + 1000)).await;
        let Ok(Extended::Held(extended)) = extended else { panic!("{extended:?}") };
        tenure = extended;
        // Who wrote is not known the first time.
        while renewal == 0 && heard(&mut changes, Duration::from_millis(100)).await.is_ok() {}
    }
    let quiet = heard(&mut changes, Duration::from_millis(100)).await;
    assert!(quiet.is_err(), "a renewal was announced as a change");
    a.release(&tenure, 1).await.unwrap();
    assert_eq!(heard(&mut changes, Duration::from_secs(5)).await, Ok(Some(())));
    while heard(&mut changes, Duration::from_millis(100)).await.is_ok() {}
    // Somebody new is announced again.
    take(&a, &slot(), unix_ms()).await;
    assert_eq!(heard(&mut changes, Duration::from_secs(5)).await, Ok(Some(())));
}

#[tokio::test]
async fn a_directory_that_went_away_is_an_outage() {
    let home = home();
    let root = home.path().join("mount");
    let store = open(&root).await;
    let now = unix_ms();
    let tenure = take(&store, &slot(), now).await;
    let next = claim(&store, &Slot::worker(1), now).await;
    fs::rename(&root, home.path().join("elsewhere")).unwrap();
    assert_eq!(kind(store.meta().await), ErrorKind::Unavailable);
    assert_eq!(kind(store.list(Group::Workers).await), ErrorKind::Unavailable);
    assert_eq!(kind(store.acquire(&next).await), ErrorKind::Unavailable);
    assert_eq!(kind(store.extend(&tenure, &ask(now + 90_000)).await), ErrorKind::Unavailable);
    fs::rename(home.path().join("elsewhere"), &root).unwrap();
    let extended = store.extend(&tenure, &ask(now + 90_000)).await;
    assert!(matches!(extended, Ok(Extended::Held(_))), "{extended:?}");
}

#[tokio::test]
async fn places_that_cannot_hold_a_store_are_refused_by_kind() {
    let home = home();
    let plain = home.path().join("plain");
    fs::write(&plain, "").unwrap();
    assert_eq!(kind(try_open(&plain, Copied::Refuse).await), ErrorKind::InvalidConfig);
    let within = home.path().join("within");
    fs::create_dir(&within).unwrap();
    fs::write(within.join("default"), "").unwrap();
    assert_eq!(kind(try_open(&within, Copied::Refuse).await), ErrorKind::InvalidConfig);

    // A file system that is not known to keep locks.
    let error = try_open(Path::new("/proc/frazil"), Copied::Refuse).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsafe);
    assert!(error.to_string().contains("unsafe_filesystem=allow"), "{error}");

    // Not writable, even for root.
    let disk = full_disk(1 << 20).unwrap();
    let mut remount = Command::new("mount");
    assert!(remount.args(["-o", "remount,ro"]).arg(disk.path()).status().unwrap().success());
    assert_eq!(kind(try_open(disk.path(), Copied::Refuse).await), ErrorKind::Denied);
}

#[tokio::test]
async fn a_copy_without_its_identity_is_refused_too() {
    let home = home();
    let store = open(home.path()).await;
    take(&store, &slot(), unix_ms()).await;
    drop(store);
    let identities: Vec<_> = std::fs::read_dir(home.path())
        .unwrap()
        .map(|entry| entry.unwrap().path().join("identity"))
        .filter(|path| path.exists())
        .collect();
    assert_eq!(identities.len(), 1);
    std::fs::remove_file(&identities[0]).unwrap();
    assert_eq!(kind(try_open(home.path(), Copied::Refuse).await), ErrorKind::Unsafe);
    assert!(try_open(home.path(), Copied::Adopt).await.is_ok());
}

#[tokio::test]
async fn an_empty_range_is_full() {
    let home = home();
    let store = open(home.path()).await;
    let none = Choice::Any { first: 3, last: 2, favourite: None };
    let none = Claim { choice: none, ..claim(&store, &slot(), unix_ms()).await };
    assert_eq!(store.acquire(&none).await, Ok(Acquired::Full(frazil_coord::Census::default())));
}

#[tokio::test]
async fn a_claim_repeated_after_presence_lapsed_gives_the_same_tenure() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let claim = claim(&a, &slot(), unix_ms()).await;
    let Ok(Acquired::Held(first)) = a.acquire(&claim).await else { panic!("not held") };
    a.abandon(&slot());
    // Another test may be about to start a process, whose copy of the lock ends only then.
    let again = loop {
        match a.acquire(&claim).await {
            Ok(Acquired::Held(again)) => break again,
            Ok(Acquired::Taken) => tokio::task::yield_now().await,
            other => panic!("not held again: {other:?}"),
        }
    };
    assert_eq!((again.token, again.floor), (first.token, first.floor));
    assert!(is_held(&b, &slot()).await);
}
