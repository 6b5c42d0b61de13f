//! The announcement of changes, by persistent watches.

use frazil_zookeeper::{Client, Event, Watch};

use super::session::Deadline;
use super::tree::Tree;
use crate::error::Failure;
use crate::slot::Group;
use crate::store::{Announcer, Changes, Watched};

impl Tree {
    /// Watches the records of a kind and all presence, or the two of one slot; the nodes need not
    /// exist. The watches are set when this returns.
    pub(super) async fn watch(
        &self,
        watched: &Watched,
        deadline: Deadline,
    ) -> Result<Changes, Failure> {
        let (records, owners, marks) = match watched {
            Watched::Group(group) => {
                let owners = self.paths.owners();
                let marks = format!("{owners}/{}-", group.letter());
                (self.paths.group(*group), owners, marks)
            }
            Watched::Slot(slot) => {
                (self.paths.record(slot), self.paths.own(slot), self.paths.own(slot))
            }
        };
        let arm = |client: Client| {
            let (records, owners) = (&records, &owners);
            async move { Ok((client.watch(records).await?, client.watch(owners).await?)) }
        };
        let (records, presence) = self.session.retry(deadline, arm).await?;
        let (announcer, changes) = Changes::channel();
        let is_leased = watched.group() != Group::Keys;
        tokio::spawn(announce(records, presence, Filter { marks, is_leased }, announcer));
        Ok(changes)
    }
}

/// What is announced of all that the watches tell.
struct Filter {
    /// What the paths of presence begin with that matter.
    marks: String,
    /// Whether a record that only changes was renewed by its holder, which nobody waits for.
    is_leased: bool,
}

/// Ends when nobody listens, and when the connection is lost: what happens until it is back would
/// not be announced. A store that is dropped closes its connection.
async fn announce(mut records: Watch, mut presence: Watch, filter: Filter, announcer: Announcer) {
    loop {
        let (event, is_presence) = tokio::select! {
            event = records.next() => (event, false),
            event = presence.next() => (event, true),
            () = announcer.closed() => return,
        };
        let (path, is_renewal) = match &event {
            // A holder that comes or goes makes or removes its mark of presence, and a record that
            // is made is new: what only changes is renewed.
            Some(Event::Created(path) | Event::Deleted(path)) => (path, false),
            Some(Event::Changed(path)) => (path, filter.is_leased),
            _ => return,
        };
        // One parent has the presence of all groups.
        let concerns = !is_presence || path.starts_with(&filter.marks);
        if concerns && !is_renewal && !announcer.announce() {
            return;
        }
    }
}
