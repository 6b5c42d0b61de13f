//! Watches that share one reader of their directory, and what ends it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use frazil_coord::internal::Leasing;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::{Changes, Group, Put, Slot, Store, Watched};
use tokio::runtime::Builder;
use tokio::time::timeout;

use super::desk::{self, open, take};
use super::{file, home};

/// Longer than any announcement takes.
const PATIENCE: Duration = Duration::from_secs(5);

fn election(name: &str) -> Slot {
    Slot::named(Group::Elections, name).unwrap()
}

/// How many of this process's inotify instances watch a directory.
fn readers(directory: &Path) -> usize {
    let inode = format!(" ino:{:x} ", fs::metadata(directory).unwrap().ino());
    let entries = fs::read_dir("/proc/self/fdinfo").unwrap();
    // Other tests open and close files meanwhile.
    let infos = entries.filter_map(|entry| fs::read_to_string(entry.ok()?.path()).ok());
    infos.filter(|info| info.starts_with("pos:") && info.contains(&inode)).count()
}

async fn heard(changes: &mut Changes) -> Option<()> {
    timeout(PATIENCE, changes.next()).await.expect("nothing was announced")
}

/// Waits until a watch is over.
async fn ended(mut changes: Changes) {
    while heard(&mut changes).await.is_some() {}
}

#[tokio::test]
async fn all_watches_of_a_store_share_one_reader_and_so_do_later_ones() {
    let home = home();
    let directory = file(home.path(), "e");
    let store = open(home.path()).await;
    assert_eq!(readers(&directory), 0);
    let mut watches = vec![store.watch(&Watched::Group(Group::Elections)).await.unwrap()];
    for number in 0..20 {
        let one = Watched::Slot(election(&format!("e{number}")));
        watches.push(store.watch(&one).await.unwrap());
    }
    assert_eq!(readers(&directory), 1);
    take(&store, &election("e7"), unix_ms()).await;
    assert_eq!(heard(&mut watches[8]).await, Some(()));
    assert_eq!(heard(&mut watches[0]).await, Some(()));

    // A new watch would go through all files of the directory again.
    watches.clear();
    take(&store, &election("e8"), unix_ms()).await;
    assert_eq!(readers(&directory), 1);
    let mut late = store.watch(&Watched::Slot(election("e9"))).await.unwrap();
    assert_eq!(readers(&directory), 1);
    take(&store, &election("e9"), unix_ms()).await;
    assert_eq!(heard(&mut late).await, Some(()));

    drop(store);
    ended(late).await;
    let gone = async {
        while readers(&directory) > 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("the reader outlives its store");
}

#[tokio::test]
async fn a_directory_in_the_place_of_another_is_watched_instead_of_it() {
    let home = home();
    let root = home.path().join("store");
    let old = open(&root).await;
    let watched = Watched::Slot(election("x"));
    let before = old.watch(&watched).await.unwrap();
    fs::rename(&root, home.path().join("elsewhere")).unwrap();
    let new = open(&root).await;
    let mut changes = old.watch(&watched).await.unwrap();
    take(&new, &election("x"), unix_ms()).await;
    assert_eq!(heard(&mut changes).await, Some(()));
    ended(before).await;
}

#[tokio::test]
async fn watches_end_with_their_directory_and_begin_with_the_next() {
    let home = home();
    let store = open(home.path()).await;
    let watched = Watched::Slot(election("x"));
    let before = store.watch(&watched).await.unwrap();
    fs::remove_dir_all(home.path().join("default")).unwrap();
    ended(before).await;
    // It is created anew, often with the inode of the old one.
    assert_eq!(store.meta().await, Ok(None));
    assert!(matches!(store.put_meta(None, &desk::meta()).await, Ok(Put::Done(_))));
    let mut changes = store.watch(&watched).await.unwrap();
    take(&store, &election("x"), unix_ms()).await;
    assert_eq!(heard(&mut changes).await, Some(()));
}

#[test]
fn a_watch_is_heard_on_its_own_runtime_whatever_became_of_others() {
    let home = home();
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let watched = Watched::Slot(election("x"));
    let (ended_first, idle, last) = (runtime(), runtime(), runtime());
    let store = ended_first.block_on(open(home.path()));
    let over = ended_first.block_on(store.watch(&watched)).unwrap();
    drop(ended_first);
    last.block_on(ended(over));
    let _unheard = idle.block_on(store.watch(&watched)).unwrap();
    last.block_on(async {
        let mut changes = store.watch(&watched).await.unwrap();
        take(&store, &election("x"), unix_ms()).await;
        assert_eq!(heard(&mut changes).await, Some(()));
    });
}
