//! Texts and files that nobody would write: nothing panics, what is read is written the same way,
//! and a record that cannot be read lets nobody start below what it may have promised.
//! `FUZZ_CASES=1000000 cargo test -p frazil-coord --test fuzz` tries more of them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use frazil_coord::Copied;
use frazil_coord::internal::time::unix_ms;
use frazil_coord::internal::{Acquired, Choice, Claim, Leasing};
use frazil_coord::{
    Found, Group, Meta, Namespace, Nonce, Put, Record, Slot, Store, StoreUrl, Token, Version,
};
use frazil_rig::Corpus;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A few seconds.
const USUAL: u32 = 5_000;
/// Each of these writes files.
const USUAL_FILES: u32 = 500;

fn corpus(name: &str) -> Corpus {
    let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    Corpus::read(format!("{corpora}/{name}")).unwrap()
}

#[test]
fn a_store_url_that_is_read_prints_as_itself_without_its_password() {
    let checked = corpus("url").check(USUAL, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let Ok(url) = text.parse::<StoreUrl>() else { return };
        let printed = url.to_string();
        let again: StoreUrl = printed.parse().unwrap_or_else(|bad| panic!("{printed}: {bad}"));
        assert_eq!(again.to_string(), printed);
        assert_eq!((again.scheme, again.tls), (url.scheme, url.tls), "{printed}");
        assert_eq!((&again.hosts, &again.path), (&url.hosts, &url.path), "{printed}");
        assert_eq!(again.options, url.options, "{printed}");
        assert!(!printed.chars().any(char::is_control), "{printed:?}");
        if url.password.is_some() {
            let authority = printed.split('/').nth(2).unwrap();
            let (_, password) = authority.split_once('@').unwrap().0.split_once(':').unwrap();
            assert_eq!(password, "***", "{printed}");
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn no_message_about_a_url_repeats_its_password() {
    let checked = corpus("url").check(USUAL, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        // Where it is the password, and nothing else too.
        if text.matches("canary").count() == 1 && text.contains(":canary@") {
            let said =
                text.parse::<StoreUrl>().map_or_else(|bad| bad.to_string(), |_| String::new());
            assert!(!said.contains("canary"), "{said}");
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn names_and_nonces_that_are_read_print_as_themselves() {
    let checked = corpus("name").check(USUAL, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        if let Ok(namespace) = text.parse::<Namespace>() {
            assert_eq!(namespace.as_str(), text);
        }
        for group in [Group::Workers, Group::Elections, Group::Scopes] {
            if let Ok(slot) = Slot::named(group, &text) {
                // It names a file, and must not name one elsewhere.
                assert_eq!((slot.name(), text.contains('/')), (&*text, false));
                assert_ne!(text.get(..1), Some("."));
            }
        }
        if let Ok(nonce) = text.parse::<Nonce>() {
            assert_eq!(nonce.to_string().parse(), Ok(nonce));
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn records_and_meta_that_are_read_are_written_the_same() {
    fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
        let Ok(value) = serde_json::from_slice::<T>(bytes) else { return };
        let written = serde_json::to_vec(&value).unwrap();
        assert_eq!(serde_json::from_slice::<T>(&written).unwrap(), value);
    }
    let checked = corpus("record").check(USUAL, |bytes| {
        check::<Record>(bytes);
        check::<Meta>(bytes);
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// A namespace of one worker whose files are overwritten.
struct Files {
    runtime: tokio::runtime::Runtime,
    directory: tempfile::TempDir,
    store: Arc<dyn Store>,
}

const WORKER: u32 = 7;

impl Files {
    fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let url = StoreUrl::file(directory.path().to_str().unwrap());
        let namespace = Namespace::default();
        let opened = frazil_coord::open(&url, &namespace, Copied::Refuse);
        let store = runtime.block_on(opened).unwrap();
        let put = runtime.block_on(store.put_meta(None, &meta())).unwrap();
        assert!(matches!(put, Put::Done(_)));
        Self { runtime, directory, store }
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.directory.path().join("default").join(name), bytes).unwrap();
    }

    fn found(&self) -> Found {
        let entries = self.runtime.block_on(self.store.list(Group::Workers)).unwrap();
        let entry = entries.into_iter().find(|entry| entry.slot == Slot::worker(WORKER));
        entry.map_or(Found::New, |entry| entry.found)
    }

    fn claim(&self, meta: Version) -> Claim {
        Claim {
            choice: Choice::Any { first: WORKER, last: WORKER, favourite: None },
            nonce: Nonce::mint().unwrap(),
            holder: "fuzz".into(),
            info: BTreeMap::new(),
            ttl: Duration::from_secs(30),
            now: unix_ms(),
            ask: unix_ms() + 30_000,
            window_ms: 600_000,
            quarantine: 0,
            meta,
        }
    }
}

fn meta() -> Meta {
    Meta {
        format: 1,
        incarnation: Nonce::from_bits(1),
        layout: "fuzz".into(),
        first_worker: WORKER,
        last_worker: WORKER,
        window_ms: 600_000,
        quarantine: 0,
        token_floor: Token::default(),
        created: 1,
    }
}

#[test]
fn whatever_is_in_the_file_of_a_record_nobody_starts_below_it() {
    let files = Files::new();
    let slot = Slot::worker(WORKER).to_string();
    let meta = files.runtime.block_on(files.store.meta()).unwrap().unwrap().version;
    let checked = corpus("record").check(USUAL_FILES, |bytes| {
        files.write(&slot, bytes);
        let found = files.found();
        let claim = files.claim(meta);
        let answer = files.runtime.block_on(files.store.acquire(&claim)).unwrap();
        let Acquired::Held(tenure) = answer else { return };
        match found {
            Found::Known(record) => assert!(tenure.floor >= record.horizon, "{record:?}"),
            Found::Lost => {
                assert!(tenure.floor > claim.now, "a lost record may have promised more")
            }
            Found::New => panic!("there is a file"),
        }
        assert!(tenure.horizon <= claim.now + claim.window_ms + 1, "{tenure:?}");
        files.runtime.block_on(files.store.release(&tenure, tenure.floor)).unwrap();
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

#[test]
fn whatever_is_in_the_file_of_meta_is_an_answer_or_an_error() {
    let files = Files::new();
    let checked = corpus("record").check(USUAL_FILES, |bytes| {
        files.write("meta", bytes);
        let read = files.runtime.block_on(files.store.meta());
        if let Ok(Some(meta)) = read {
            assert!(
                meta.value.format <= frazil_coord::internal::FORMAT,
                "a newer format is left alone"
            );
        }
    });
    checked.unwrap_or_else(|broken| panic!("{broken}"));
}

/// A reader as it must not be: it takes what it finds for a record.
#[test]
fn a_reader_that_panics_is_caught() {
    let naive = |bytes: &[u8]| drop(serde_json::from_slice::<Record>(bytes).unwrap());
    assert!(corpus("record").check(USUAL, naive).is_err());
}
