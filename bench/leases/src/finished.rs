//! What a new election costs where thousands were held before, beside one where hardly any was.

use std::error::Error;
use std::time::Duration;

use frazil::coord::internal::time::{boot_time, unix_ms};
use frazil::coord::{Committed, Group, Record, Slot, Store, StoreUrl, Token};
use frazil::election::Elections;
use tokio::task::JoinSet;

use crate::crowd::{bare_record, clients, first_write};
use crate::election::{elections, settings};
use crate::server::Server;

/// How many elections are over in one of the two namespaces.
pub(crate) const FINISHED: usize = 10_000;

/// From a campaign in an election that is new to the leadership, in the middle of many.
pub(crate) struct NewElection {
    /// Where hardly any was held before.
    pub(crate) among_few: Duration,
    /// Where [`FINISHED`] were.
    pub(crate) among_many: Duration,
}

impl NewElection {
    /// The two in turns, so that whatever else the machine does falls on both.
    pub(crate) async fn measure(server: &Server, rounds: usize) -> Result<Self, Box<dyn Error>> {
        let url = server.url();
        let few = elections(&url, "few-elections").await?;
        let many = elections(&url, "many-elections").await?;
        for elections in [&few, &many] {
            hold(elections, "first").await?;
        }
        finish(&url, FINISHED).await?;
        let (mut among_few, mut among_many) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let name = format!("new-{round}");
            among_few.push(hold(&few, &name).await?);
            among_many.push(hold(&many, &name).await?);
        }
        let median = |times: &[Duration]| crate::percentile(times, 50);
        Ok(Self { among_few: median(&among_few), among_many: median(&among_many) })
    }
}

/// Leads an election for a moment; how long it took to be elected.
async fn hold(elections: &Elections, name: &str) -> Result<Duration, Box<dyn Error>> {
    let candidate = elections.candidate(name, settings("one"))?;
    let began = boot_time();
    let leadership = candidate.campaign().await?;
    let took = boot_time() - began;
    leadership.resign().await?;
    Ok(took)
}

/// Leaves the records that elections leave whose leaders resigned. To hold each would take minutes.
async fn finish(url: &str, count: usize) -> Result<(), Box<dyn Error>> {
    let url: StoreUrl = url.parse()?;
    let clients = clients(&url, &"many-elections".parse()?).await?;
    let mut writers = JoinSet::new();
    for (writer, store) in clients.iter().cloned().enumerate() {
        let numbers = (writer..count).step_by(clients.len());
        writers.spawn(async move {
            for number in numbers {
                leave(store.as_ref(), &format!("old-{number}")).await?;
            }
            Ok::<(), String>(())
        });
    }
    while let Some(done) = writers.join_next().await {
        done??;
    }
    Ok(())
}

async fn leave(store: &dyn Store, name: &str) -> Result<(), String> {
    let now = unix_ms();
    let record = Record {
        token: Token(now),
        holder: "gone".into(),
        horizon: 0,
        renewed: now,
        released: true,
        ..bare_record()
    };
    let slot = Slot::named(Group::Elections, name).map_err(|why| why.to_string())?;
    match store.commit(&first_write(slot, record)).await {
        Ok(Committed::Done { .. }) => Ok(()),
        other => Err(format!("a record was not written: {other:?}")),
    }
}
