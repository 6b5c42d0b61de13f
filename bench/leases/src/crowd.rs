//! A crowd of claims, and as many bare writes.

use std::collections::BTreeSet;
use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use frazil::Node;
use frazil::coord::keeper::FirstUse;
use frazil::coord::stores::file::Copied;
use frazil::coord::time::{boot_time, unix_ms};
use frazil::coord::{
    Acquired, Act, Change, Claim, Commit, FORMAT, Leasing, Meta, Namespace, Nonce, Present, Put,
    Record, Slot, Stay, Store, StoreUrl, Token, Version, Versioned,
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
    pub(crate) operations: Option<f64>,
    pub(crate) first_id: Duration,
}

impl Crowd {
    pub(crate) async fn measure(server: &Server) -> Result<Self, Box<dyn Error>> {
        let url: StoreUrl = server.url().parse()?;
        let (claims, operations) = claims(server, &url).await?;
        let writes = writes(&url).await?;
        let first_id = first_id(&url).await?;
        Ok(Self { claims, writes, operations, first_id })
    }
}

/// From the start of a node to its first Id, with the store up: the median of five.
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

async fn clients(
    url: &StoreUrl,
    namespace: &Namespace,
) -> Result<Vec<Arc<dyn Store>>, Box<dyn Error>> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(frazil::coord::open(url, namespace, Copied::Refuse).await?);
    }
    Ok(clients)
}

async fn claims(
    server: &Server,
    url: &StoreUrl,
) -> Result<(Duration, Option<f64>), Box<dyn Error>> {
    let clients = clients(url, &"crowd".parse()?).await?;
    let meta = Meta {
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
    let Put::Done(version) = clients[0].put_meta(None, &meta).await? else {
        return Err("the namespace is not new".into());
    };
    let meta = Versioned { version, value: meta };
    let before = server.operations();
    let gate = Arc::new(Barrier::new(CLAIMS as usize + 1));
    let mut waiting = JoinSet::new();
    for index in 0..CLAIMS {
        let store = clients[index as usize % clients.len()].clone();
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
            acquire(store.as_ref(), claim).await
        });
    }
    gate.wait().await;
    let started = boot_time();
    let mut workers = BTreeSet::new();
    while let Some(done) = waiting.join_next().await {
        workers.insert(done?.map_err(|why| why.to_string())?);
    }
    let took = boot_time() - started;
    if workers.len() != CLAIMS as usize {
        return Err(format!("{} distinct workers", workers.len()).into());
    }
    let operations =
        server.operations().zip(before).map(|(after, before)| (after - before) / f64::from(CLAIMS));
    Ok((took, operations))
}

/// Claims until it is settled, as a keeper does.
async fn acquire(store: &dyn Store, mut claim: Claim) -> Result<u32, frazil::coord::Error> {
    let any = claim.choice.clone();
    loop {
        match store.acquire(&claim).await? {
            Acquired::Held(tenure) => return Ok(tenure.slot.number().unwrap_or(u32::MAX)),
            Acquired::Unsure(slot, version) | Acquired::Unsettled(slot, version, _) => {
                claim.choice = frazil::coord::Choice::This(slot, version);
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
            let record = Record {
                token: Token(1),
                nonce: None,
                holder: "bare write".into(),
                floor: 0,
                horizon: 1,
                renewed: 1,
                expires: None,
                released: false,
                info: std::collections::BTreeMap::new(),
            };
            let change = Change {
                slot: Slot::worker(index),
                version: Version(0),
                nonce: None,
                present: Present::Nobody,
                record,
                stay: Stay::Ended,
            };
            let changes = vec![change];
            let commit = Commit { act: Act::Put, meta: None, history: None, changes };
            store.commit(&commit).await
        });
    }
    while let Some(done) = waiting.join_next().await {
        done??;
    }
    Ok(boot_time() - started)
}
