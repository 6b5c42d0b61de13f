//! Changes of a directory, announced by the kernel.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{EventMask, EventOwned, EventStream, Inotify, WatchMask};

use crate::store::{Announcer, Changes};

/// The kernel tells of a closed lock file just before it lets go of the lock, so every
/// announcement is repeated after these pauses: soon, for that is nearly always long enough, and then
/// less soon.
const LATER_LOOKS: [Duration; 4] = [
    Duration::from_millis(1),
    Duration::from_millis(1),
    Duration::from_millis(2),
    Duration::from_millis(4),
];
/// Room for many events: that something changed is all that is told.
const EVENTS_BYTES: usize = 4096;

/// Announces records that come from a new holder, and locks that end, also with their process: of
/// every slot in the directory, or of one.
pub(super) fn changes(directory: &Path, only: Option<&str>) -> io::Result<Changes> {
    let inotify = Inotify::init()?;
    inotify.watches().add(directory, WatchMask::MOVED_TO | WatchMask::CLOSE_WRITE)?;
    let mut events = inotify.into_event_stream([0; EVENTS_BYTES])?;
    let (announcer, changes) = Changes::channel();
    let presence = Presence { only: only.map(str::to_owned), renewing: HashSet::new() };
    tokio::spawn(async move {
        tokio::select! {
            () = announcer.closed() => {}
            () = announce(&mut events, presence, &announcer) => {}
        }
    });
    Ok(changes)
}

async fn announce(
    events: &mut EventStream<[u8; EVENTS_BYTES]>,
    mut presence: Presence,
    announcer: &Announcer,
) {
    let mut later = [].iter();
    let mut heard = true;
    while heard {
        let pause = later.as_slice().first().copied();
        tokio::select! {
            event = events.next() => {
                let Some(Ok(event)) = event else { return };
                if event.mask.contains(EventMask::IGNORED) {
                    // The directory was removed.
                    return;
                }
                if presence.changes_by(&event) {
                    heard = announcer.announce();
                    later = LATER_LOOKS.iter();
                }
            }
            () = tokio::time::sleep(pause.unwrap_or_default()), if pause.is_some() => {
                heard = announcer.announce();
                later.next();
            }
        }
    }
}

/// Who is present, as far as events tell.
#[derive(Debug)]
struct Presence {
    /// The slot that matters, if not all do.
    only: Option<String>,
    /// The slots whose records were seen to be replaced since their locks last ended: what replaces
    /// them further is a renewal, which nobody waits for.
    renewing: HashSet<String>,
}

impl Presence {
    /// Whether an event is about somebody who came or went.
    fn changes_by(&mut self, event: &EventOwned) -> bool {
        if event.mask.contains(EventMask::Q_OVERFLOW) {
            // What happened meanwhile is not known.
            self.renewing.clear();
            return true;
        }
        let Some(file) = event.name.as_ref().and_then(|name| name.to_str()) else { return true };
        let (slot, is_record) = match file.strip_prefix('.') {
            None => (file, true),
            Some(hidden) => match hidden.strip_suffix(".lock") {
                Some(slot) => (slot, false),
                // A draft is the beginning of a record.
                None => return false,
            },
        };
        if self.only.as_deref().is_some_and(|only| only != slot) {
            return false;
        }
        match is_record {
            true => self.renewing.insert(slot.to_owned()),
            false => {
                self.renewing.remove(slot);
                true
            }
        }
    }
}
