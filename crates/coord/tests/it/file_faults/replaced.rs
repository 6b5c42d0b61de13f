//! A directory that is replaced under those who hold slots in it.

use std::fs;
use std::process::Command;

use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Extended, Leasing, Released};
use frazil_coord::{ErrorKind, Loss, Nonce, Put, Slot, Store};

use super::desk::{self, ask, is_held, open, take, try_open};
use super::{Copied, file, home, kind, slot};

#[tokio::test]
async fn a_directory_replaced_by_another_ends_the_tenures_of_the_old_one() {
    let home = home();
    let root = home.path().join("store");
    let old = open(&root).await;
    let now = unix_ms();
    let (first, second) = (take(&old, &slot(), now).await, take(&old, &Slot::worker(1), now).await);
    assert!(old.is_in_place(&slot(), first.nonce));
    fs::rename(&root, home.path().join("elsewhere")).unwrap();
    // It may come back.
    assert!(old.is_in_place(&slot(), first.nonce));
    let new = open(&root).await;
    let successor = take(&new, &slot(), now).await;
    assert!(!old.is_in_place(&slot(), first.nonce));
    let extended = old.extend(&first, &ask(now + 90_000)).await;
    assert_eq!(extended, Ok(Extended::Lost(Loss::Vanished)));

    // The store goes on in the new directory, and those who have not heard yet still do.
    let next = take(&old, &Slot::worker(2), now).await;
    assert!(is_held(&new, &Slot::worker(2)).await);
    assert!(old.is_in_place(&Slot::worker(2), next.nonce));
    assert!(!old.is_in_place(&Slot::worker(1), second.nonce));
    let extended = old.extend(&second, &ask(now + 90_000)).await;
    assert_eq!(extended, Ok(Extended::Lost(Loss::Vanished)));
    assert_eq!(old.release(&first, now).await, Ok(Released::NotHeld));
    assert!(is_held(&old, &slot()).await, "the successor was thrown out");
    assert!(matches!(new.extend(&successor, &ask(now)).await, Ok(Extended::Held(_))));
}

#[tokio::test]
async fn a_removed_directory_ends_its_tenures_and_is_created_anew() {
    let home = home();
    let store = open(home.path()).await;
    let now = unix_ms();
    let tenure = take(&store, &slot(), now).await;
    fs::remove_dir_all(home.path().join("default")).unwrap();
    assert!(!store.is_in_place(&slot(), tenure.nonce));
    let extended = store.extend(&tenure, &ask(now + 90_000)).await;
    assert_eq!(extended, Ok(Extended::Lost(Loss::Vanished)));
    assert_eq!(store.meta().await, Ok(None));
    assert!(matches!(store.put_meta(None, &desk::meta()).await, Ok(Put::Done(_))));
    take(&store, &slot(), now).await;
}

#[tokio::test]
async fn a_copy_in_the_place_of_the_directory_ends_its_tenures_and_is_not_used() {
    let home = home();
    let store = open(home.path()).await;
    let now = unix_ms();
    let tenure = take(&store, &slot(), now).await;
    let (root, aside) = (home.path().join("default"), home.path().join("aside"));
    assert!(Command::new("cp").arg("-a").args([&root, &aside]).status().unwrap().success());
    fs::rename(&root, home.path().join("original")).unwrap();
    fs::rename(&aside, &root).unwrap();
    let extended = store.extend(&tenure, &ask(now + 90_000)).await;
    assert_eq!(extended, Ok(Extended::Lost(Loss::Vanished)));
    assert_eq!(kind(store.meta().await), ErrorKind::Unsafe);
    assert_eq!(kind(try_open(home.path(), Copied::Refuse).await), ErrorKind::Unsafe);
}

#[tokio::test]
async fn an_empty_directory_in_its_place_is_an_outage() {
    let home = home();
    let store = open(home.path()).await;
    let now = unix_ms();
    let tenure = take(&store, &slot(), now).await;
    let root = home.path().join("default");
    fs::rename(&root, home.path().join("unmounted")).unwrap();
    fs::create_dir(&root).unwrap();
    assert_eq!(kind(store.extend(&tenure, &ask(now)).await), ErrorKind::Unavailable);
    assert_eq!(kind(store.meta().await), ErrorKind::Unavailable);
    assert_eq!(fs::read_dir(&root).unwrap().count(), 0, "something was created in it");
    fs::remove_dir(&root).unwrap();
    fs::rename(home.path().join("unmounted"), &root).unwrap();
    assert!(matches!(store.extend(&tenure, &ask(now)).await, Ok(Extended::Held(_))));
}

#[tokio::test]
async fn a_tenure_of_a_namespace_that_was_created_anew_ends_and_leaves_its_slot() {
    let home = home();
    let (a, b) = (open(home.path()).await, open(home.path()).await);
    let now = unix_ms();
    let tenure = take(&a, &slot(), now).await;
    fs::remove_file(file(home.path(), "meta")).unwrap();
    let meta = frazil_coord::Meta { incarnation: Nonce::from_bits(2), ..desk::meta() };
    assert!(matches!(b.put_meta(None, &meta).await, Ok(Put::Done(_))));
    let extended = a.extend(&tenure, &ask(now)).await;
    assert_eq!(extended, Ok(Extended::Lost(Loss::Vanished)));
    assert!(!is_held(&b, &slot()).await, "the slot is held for nobody");
    assert_eq!(take(&b, &slot(), tenure.horizon).await.floor, tenure.horizon);
}
