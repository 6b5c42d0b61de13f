//! The list of keys, in a file or in the namespace's store: read, and changed by one at a time.

use std::path::Path;

use frazil::coord::{Copied, Scheme};
use frazil_server::keys::{self, KeyEntry, KeySource, KeysError, StoredKeys, StoredKeysError};

use super::document::Document;
use crate::args::{KeyStoreArgs, PlaceArg};
use crate::commands::place::runtime;
use crate::locked_file::LockedFile;
use crate::output::{Exit, Failure};

/// How often a change is made anew because others were faster.
const ROUNDS_MAX: usize = 16;

/// What becomes of a list that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absent {
    Create,
    Refuse,
}

/// The keys of a list.
pub(super) fn read(source: &KeySource, place: &PlaceArg) -> Result<Vec<KeyEntry>, Failure> {
    match source {
        KeySource::File(path) => keys::read(path).map_err(Failure::usage),
        KeySource::Store => runtime()?.block_on(async {
            check_scheme(place)?;
            let store = place.look().await?;
            Ok(StoredKeys::load(store.as_ref()).await?.entries()?)
        }),
    }
}

/// Changes a list, and gives what the change gave. It may be made several times, until nobody else has
/// changed the list meanwhile.
pub(super) fn change<T>(
    source: &KeySource,
    store: &KeyStoreArgs,
    absent: Absent,
    edit: impl Fn(&mut Document) -> Result<T, Failure>,
) -> Result<T, Failure> {
    match source {
        KeySource::File(path) => change_file(path, absent, edit),
        KeySource::Store => runtime()?.block_on(change_stored(store, absent, edit)),
    }
}

/// When a running server goes by a change.
pub(super) const fn reach(source: &KeySource) -> &'static str {
    match source {
        KeySource::File(_) => "a running server sees it after kill -HUP",
        KeySource::Store => "running servers see it within a second",
    }
}

fn change_file<T>(
    path: &Path,
    absent: Absent,
    edit: impl Fn(&mut Document) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let file = match absent {
        Absent::Create => LockedFile::open_or_new(path)?,
        Absent::Refuse => LockedFile::open(path)?,
    };
    let mut document = Document::parse(&file.read()?).map_err(|KeysError { problems }| {
        let path = file.path().display();
        let lines: Vec<String> =
            problems.iter().map(|problem| format!("{path}:{problem}")).collect();
        Failure::usage(lines.join("\n"))
    })?;
    let done = edit(&mut document)?;
    file.replace(&document.text())?;
    Ok(done)
}

async fn change_stored<T>(
    args: &KeyStoreArgs,
    absent: Absent,
    edit: impl Fn(&mut Document) -> Result<T, Failure>,
) -> Result<T, Failure> {
    check_scheme(&args.place)?;
    if absent == Absent::Refuse {
        // To open may create directories or nodes.
        let looked = args.place.look().await?;
        edit(&mut document(&StoredKeys::load(looked.as_ref()).await?)?)?;
    }
    let store = args.place.open(Copied::Refuse).await?;
    args.loss.check(store.as_ref()).await?;
    StoredKeys::prepare(store.as_ref(), args.place.url()?.scheme).await?;
    for _ in 0..ROUNDS_MAX {
        let seen = StoredKeys::load(store.as_ref()).await?;
        let mut document = document(&seen)?;
        let done = edit(&mut document)?;
        if seen.replace(store.as_ref(), &document.text()).await? {
            args.loss.settle(store.as_ref()).await?;
            return Ok(done);
        }
    }
    let why = format!("others change the keys in {store} again and again: run this again");
    Err(Failure::new(Exit::Unavailable, why))
}

fn document(stored: &StoredKeys) -> Result<Document, StoredKeysError> {
    Document::parse(stored.text.as_deref().unwrap_or_default()).map_err(StoredKeysError::Keys)
}

fn check_scheme(place: &PlaceArg) -> Result<(), Failure> {
    if place.url()?.scheme == Scheme::Memory {
        return Err(Failure::usage(frazil_server::BindError::KeysInMemory));
    }
    Ok(())
}
