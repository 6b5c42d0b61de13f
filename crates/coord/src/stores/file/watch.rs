//! Changes of a directory, announced by the kernel.

use std::io;
use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use inotify::{EventStream, Inotify, WatchMask};

use crate::store::{Announcer, Changes};

/// The kernel tells of a closed lock file just before it lets go of the lock, so every
/// announcement is repeated after a while that is longer than that.
const SECOND_LOOK: Duration = Duration::from_millis(5);
/// Room for many events: that something changed is all that is told.
const EVENTS_BYTES: usize = 4096;

/// Announces records that are replaced, and locks that end with their process.
pub(super) fn changes(directory: &Path) -> io::Result<Changes> {
    let inotify = Inotify::init()?;
    inotify.watches().add(directory, WatchMask::MOVED_TO | WatchMask::CLOSE_WRITE)?;
    let mut events = inotify.into_event_stream([0; EVENTS_BYTES])?;
    let (announcer, changes) = Changes::channel();
    tokio::spawn(async move {
        tokio::select! {
            () = announcer.closed() => {}
            () = announce(&mut events, &announcer) => {}
        }
    });
    Ok(changes)
}

async fn announce(events: &mut EventStream<[u8; EVENTS_BYTES]>, announcer: &Announcer) {
    while let Some(Ok(_)) = events.next().await {
        let heard = announcer.announce();
        tokio::time::sleep(SECOND_LOOK).await;
        if !heard || !announcer.announce() {
            return;
        }
    }
}
