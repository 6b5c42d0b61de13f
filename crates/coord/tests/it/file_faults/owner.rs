//! Whose a directory is.

use std::fs;
use std::os::unix::fs::chown;

use frazil_coord::Copied;
use frazil_coord::internal::stores::file::FileStore;
use frazil_coord::{ErrorKind, Namespace, Store, StoreUrl};

use super::desk::{open, try_open};
use super::home;

/// Somebody who is neither root nor this process.
const SOMEBODY: u32 = 4_242;

#[tokio::test]
async fn a_directory_of_another_user_is_refused_with_the_way_out() {
    let home = home();
    drop(open(home.path()).await);
    for place in [home.path().to_owned(), home.path().join("default")] {
        let ours = fs::metadata(&place).unwrap();
        chown(&place, Some(SOMEBODY), None).unwrap();
        let error = try_open(home.path(), Copied::Refuse).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsafe);
        for part in ["uid 4242", "chown -R", "unsafe_owner=allow"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        // Whoever only looks does no harm.
        let url = StoreUrl::file(home.path().display().to_string());
        frazil_coord::look(&url, &Namespace::default()).await.unwrap();
        let allowed = format!("file:{}?unsafe_owner=allow", home.path().display());
        let allowed = allowed.parse().unwrap();
        let store = FileStore::open(&allowed, &Namespace::default(), Copied::Refuse).await.unwrap();
        let warnings = store.guarantees().warnings.join("\n");
        assert!(warnings.contains("another user"), "{warnings}");
        chown(&place, Some(std::os::unix::fs::MetadataExt::uid(&ours)), None).unwrap();
    }
    open(home.path()).await;
}
