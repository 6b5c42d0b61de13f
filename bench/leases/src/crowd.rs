//! A crowd of claims, and as many bare writes.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use frazil::Node;
use frazil::coord::Copied;
use frazil::coord::FirstUse;
use frazil::coord::internal::time::{boot_time, unix_ms};
use frazil::coord::internal::{Acquired, Claim, FORMAT, Leasing};
use frazil::coord::{
    Act, Change, Commit, Meta, Metered, Namespace, Nonce, PresenceChange, Present, Put, Record,
    Slot, Store, StoreUrl, Token, Version, Versioned,
};
use tokio::sync::Barrier;
use tokio::task::JoinSet;

use crate::server::Server;

const CLAIMS: u32 = 1024;
/// Clients with a connection each. More would measure the opening of connections.
const CLIENTS: u32 = 64;

/// What was measured.
pub(crate) struct Crowd {
    pub(crate) claims: Duration,
    pub(crate) writes: Duration,
    /// Of a claim, in the mean: as the server counts them, or as its client does where there is none.
    pub(crate) operations: f64,
    /// Of one claim, at most, as its client counts them.
    pub(crate) most: u64,
    pub(crate) first_id: Duration,
}

impl Crowd {
    pub(crate) async fn measure(server: &Server) -> Result<Self, Box<dyn Error>> {
        let url: StoreUrl = server.url().parse()?;
        let (claims, operations, most) = claims(server, &url).await?;
        let writes = writes(&url).await?;
        let first_id = first_id(&url).await?;
        Ok(Self { claims, writes, operations, most, first_id })
    }
}

/// From the start of a node to its first ID, with the store up: the median of five.
async fn first_id(url: &StoreUrl) -> Result<Duration, Box<dyn Error>> {
    let mut times = Vec::new();
    for _ in 0..5 {
        let started = boot_time();
        let builder = Node::builder().store_url(url.clone()).namespace("first".parse()?);
        let node = builder.first_use(FirstUse::AtOnce).start().await?;
        node.next().await?;
        times.push(boot_time() - started);
        node.shutdown().await;
    }
    times.sort();
    Ok(times[2])
}

pub(crate) async fn clients(
    url: &StoreUrl,
    namespace: &Namespace,
) -> Result<Vec<Arc<dyn Store>>, Box<dyn Error>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(frazil::coord::open(url, namespace, Copied::Refuse).await?);
    }
    Ok(clients)
}

/// A new namespace of as many workers as there are claims.
async fn found(store: &dyn Store) -> Result<Versioned<Meta>, Box<dyn Error>> {
    let value = Meta {
        format: FORMAT,
        incarnation: Nonce::mint()?,
        layout: "bench".into(),
        first_worker: 0,
        last_worker: CLAIMS - 1,
        window_ms: 600_000,
        quarantine: 0,
        token_floor: Token::default(),
        created: unix_ms(),
    };
    match store.put_meta(None, &value).await? {
        Put::Done(version) => Ok(Versioned { version, value }),
        Put::Conflict => Err("the namespace is not new".into()),
    }
}

async fn claims(server: &Server, url: &StoreUrl) -> Result<(Duration, f64, u64), Box<dyn Error>> {
    let clients = clients(url, &"crowd".parse()?).await?;
    let meta = found(clients[0].as_ref()).await?;
    let before = server.operations();
    let gate = Arc::new(Barrier::new(CLAIMS as usize + 1));
    let mut waiting = JoinSet::new();
    for index in 0..CLAIMS {
        let store = Metered::new(clients[index as usize % clients.len()].clone());
        let claim = Claim {
            nonce: Nonce::mint()?,
            holder: format!("client {index}"),
            ttl: Duration::from_secs(30),
            ask: unix_ms() + 90_000,
            ..Claim::to_judge(&meta, unix_ms())
        };
        let gate = gate.clone();
        waiting.spawn(async move {
            gate.wait().await;
            let worker = acquire(&store, claim).await;
            worker.map(|worker| (worker, store))
        });
    }
    gate.wait().await;
    let started = boot_time();
    let (mut workers, mut stores) = (BTreeSet::new(), Vec::new());
    while let Some(done) = waiting.join_next().await {
        let (worker, store) = done?.map_err(|why| why.to_string())?;
        workers.insert(worker);
        stores.push(store);
    }
    let took = boot_time() - started;
    if workers.len() != CLAIMS as usize {
        return Err(format!("{} distinct workers", workers.len()).into());
    }
    let requests: Vec<u64> = stores.iter().map(requests).collect();
    let all = match server.operations().zip(before) {
        Some((after, before)) => after - before,
        None => requests.iter().map(|count| f64::from(u32::try_from(*count).unwrap_or(0))).sum(),
    };
    Ok((took, all / f64::from(CLAIMS), requests.into_iter().max().unwrap_or(0)))
}

/// What was asked of a store through its wrapper.
fn requests(store: &Metered) -> u64 {
    store.snapshot().iter().map(|operations| operations.count).sum()
}

/// Claims until it is settled, as a keeper does.
async fn acquire(store: &dyn Store, mut claim: Claim) -> Result<u32, frazil::coord::Error> {
    let any = claim.choice.clone();
    loop {
        match store.acquire(&claim).await? {
            Acquired::Held(tenure) => return Ok(tenure.slot.number().unwrap_or(u32::MAX)),
            Acquired::Unsure(slot, version) | Acquired::Unsettled(slot, version, _) => {
                claim.choice = frazil::coord::internal::Choice::This(slot, version);
            }
            Acquired::Taken
            | Acquired::Full(_)
            | Acquired::MetaMoved
            | Acquired::ClockOff { .. } => {
                claim.choice = any.clone();
                tokio::task::yield_now().await;
            }
        }
    }
}

/// One record each, without any contention.
async fn writes(url: &StoreUrl) -> Result<Duration, Box<dyn Error>> {
    let clients = clients(url, &"writes".parse()?).await?;
    let started = boot_time();
    let mut waiting = JoinSet::new();
    for index in 0..CLAIMS {
        let store = clients[index as usize % clients.len()].clone();
        waiting.spawn(async move {
            let record = Record { holder: "bare write".into(), ..bare_record() };
            store.commit(&first_write(Slot::worker(index), record)).await
        });
    }
    while let Some(done) = waiting.join_next().await {
        done??;
    }
    Ok(boot_time() - started)
}

/// A record of a slot that nobody is present in.
pub(crate) fn bare_record() -> Record {
    Record {
        token: Token(1),
        nonce: None,
        holder: String::new(),
        floor: 0,
        horizon: 1,
        renewed: 1,
        expires: None,
        released: false,
        info: std::collections::BTreeMap::new(),
    }
}

/// Writes a record to a slot that was never used.
pub(crate) fn first_write(slot: Slot, record: Record) -> Commit {
    let change = Change {
        slot,
        version: Version(0),
        nonce: None,
        present: Present::Nobody,
        record,
        presence_change: PresenceChange::Ended,
    };
    Commit { act: Act::Put, meta: None, history: None, changes: vec![change] }
}
