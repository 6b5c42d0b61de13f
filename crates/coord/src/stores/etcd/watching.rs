//! The announcement of changes of slots.

use etcd_client::{WatchFilterType, WatchOptions, WatchResponse, WatchStream};
use tokio::sync::watch;

use super::endpoints::Use;
use super::failure::Failure;
use super::keys::Keys;
use super::remote::{Call, RequestEffect};
use crate::error::ErrorKind;
use crate::store::{Announcer, Changes, Watched};

/// How many keys or ranges of keys are watched.
const RANGES: usize = 3;

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
    let stream = call
        .request(RequestEffect::Reads, |member| async move {
            let client = call.remote.endpoints.open(member.index, Use::Streams).await?;
            let all = || match watched {
                Watched::Group(_) => WatchOptions::new().with_prefix(),
                Watched::Slot(_) => WatchOptions::new(),
            };
            let deletions = || all().with_filters([WatchFilterType::NoPut]);
            let [records, owns, borns] = match watched {
                Watched::Group(group) => {
                    [keys.records(*group), keys.owns(*group), keys.borns(*group)]
                }
                Watched::Slot(slot) => [keys.record(slot), keys.own(slot), keys.born(slot)],
            };
            let mut stream = client.watch_client().watch(borns, Some(all())).await?;
            stream.watch(owns, Some(deletions())).await?;
            stream.watch(records, Some(deletions())).await?;
            armed(stream).await
        })
        .await?;
    let (announcer, changes) = Changes::channel();
    tokio::spawn(announce(stream, announcer, alive));
    Ok(changes)
}

/// Waits until the server has confirmed every range.
async fn armed(mut stream: WatchStream) -> Result<WatchStream, Failure> {
    let mut confirmed = 0;
    while confirmed < RANGES {
        let Some(answer) = stream.message().await? else {
            return Err(Failure::Undone("the server ended the watch at its start".into()));
        };
        if answer.canceled() {
            return Err(refusal(&answer));
        }
        confirmed += usize::from(answer.created());
    }
    Ok(stream)
}

fn refusal(answer: &WatchResponse) -> Failure {
    let why = answer.cancel_reason();
    if why.contains("permission denied") {
        Failure::Refused(ErrorKind::Denied, why.into())
    } else {
        Failure::Undone(format!("the server refused the watch: {why}"))
    }
}

/// Ends with the stream, and so does the listener's [`Changes`]: it then has to look again, as
/// something may have been missed. So it is when history was compacted away under the watch.
async fn announce(mut stream: WatchStream, announcer: Announcer, mut alive: watch::Receiver<()>) {
    loop {
        let answer = tokio::select! {
            answer = stream.message() => answer,
            () = announcer.closed() => return,
            _ = alive.changed() => return,
        };
        match answer {
            Ok(Some(answer)) if !answer.canceled() => {
                if !answer.events().is_empty() && !announcer.announce() {
                    return;
                }
            }
            Ok(_) | Err(_) => return,
        }
    }
}
