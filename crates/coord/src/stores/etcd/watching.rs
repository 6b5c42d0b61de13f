//! The announcement of changes of slots.

use frazil_etcd::{FilterType, Watch, WatchCreateRequest};
use tokio::sync::watch;

use super::endpoints::Use;
use super::failure::Failure;
use super::keys::Keys;
use super::remote::{Call, RequestEffect};
use crate::store::{Announcer, Changes, Watched};

/// Subscribes, and announces in the background until nobody listens, the store object is dropped,
/// or the connection is lost.
///
/// Every change of holder and every record put by an operator writes the slot's marker, and the
/// end of presence deletes a key. So puts are watched on the markers alone: otherwise each renewal
/// of each holder would wake everybody.
pub(super) async fn subscribe(
    call: &Call<'_>,
    keys: &Keys,
    watched: &Watched,
    alive: watch::Receiver<()>,
) -> Result<Changes, Failure> {
    let ranges = match watched {
        Watched::Group(group) => [keys.records(*group), keys.owns(*group), keys.borns(*group)]
            .map(WatchCreateRequest::prefix),
        Watched::Slot(slot) => {
            [keys.record(slot), keys.own(slot), keys.born(slot)].map(WatchCreateRequest::key)
        }
    };
    let [records, owns, borns] = ranges;
    let deletions = |range| WatchCreateRequest { filters: vec![FilterType::Noput.into()], ..range };
    let ranges = &[borns, deletions(owns), deletions(records)];
    let watch = call
        .request(RequestEffect::Reads, |member| async move {
            let client = call.remote.endpoints.open(member.index, Use::Streams)?;
            client.watch(ranges).await.map_err(Failure::from)
        })
        .await?;
    let (announcer, changes) = Changes::channel();
    tokio::spawn(announce(watch, announcer, alive));
    Ok(changes)
}

/// Ends with the stream, and so does the listener's [`Changes`]: it then has to look again, as
/// something may have been missed. So it is when history was compacted away under the watch.
async fn announce(mut watch: Watch, announcer: Announcer, mut alive: watch::Receiver<()>) {
    loop {
        let changed = tokio::select! {
            changes = watch.changes() => changes.is_ok(),
            () = announcer.closed() => return,
            _ = alive.changed() => return,
        };
        if !changed || !announcer.announce() {
            return;
        }
    }
}
