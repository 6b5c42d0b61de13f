//! How fast a leader is elected, handed over and replaced.

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use frazil::coord::Copied;
use frazil::coord::internal::time::boot_time;
use frazil::coord::{Namespace, StoreUrl};
use frazil::election::{Elections, Settings, store_url};

use crate::server::Server;

/// The shortest that every store here keeps.
pub(crate) const TTL: Duration = Duration::from_secs(2);
/// Whoever is to be killed is told so by this.
pub(crate) const VICTIM: &str = "--victim";
const NAME: &str = "bench";

/// What was measured.
pub(crate) struct Election {
    /// From a campaign to the leadership, in an empty namespace.
    pub(crate) first: Duration,
    /// From a resignation to the next leadership, each.
    pub(crate) handovers: Vec<Duration>,
    /// Of a hand-over, in the mean, with what the next leader asked to see that it waits; where they
    /// are counted.
    pub(crate) operations: Option<f64>,
    /// From the death of a leader to the next leadership, each.
    pub(crate) crashes: Vec<Duration>,
}

pub(crate) fn settings(instance: &str) -> Settings {
    Settings::default()
        .with_ttl(TTL)
        .with_heartbeat(Duration::from_millis(500))
        .with_retry(Duration::from_secs(1))
        .with_lock_delay(Duration::ZERO)
        .with_instance(instance)
}

/// A client of its own.
pub(crate) async fn elections(url: &str, namespace: &str) -> Result<Elections, Box<dyn Error>> {
    let url: StoreUrl = url.parse()?;
    let namespace: Namespace = namespace.parse()?;
    let store = frazil::coord::open(&store_url(&url, TTL), &namespace, Copied::Refuse).await?;
    Ok(Elections::new(store))
}

impl Election {
    pub(crate) async fn measure(
        server: &Server,
        handovers: usize,
        crashes: usize,
    ) -> Result<Self, Box<dyn Error>> {
        let url = server.url();
        let a = elections(&url, "elections").await?.candidate(NAME, settings("a"))?;
        let b = elections(&url, "elections").await?.candidate(NAME, settings("b"))?;
        let started = boot_time();
        let mut leader = a.campaign().await?;
        let first = boot_time() - started;
        let (mut times, before) = (Vec::new(), server.operations());
        for round in 0..handovers {
            let next = if round % 2 == 0 { b.clone() } else { a.clone() };
            let mut observer = next.observe();
            let campaign = tokio::spawn(async move {
                let won = next.campaign().await;
                (won, boot_time())
            });
            // The next one has seen who leads, and waits.
            let token = leader.token();
            while observer.changed().await.is_none_or(|seen| seen.token != token) {}
            let resigned = boot_time();
            leader.resign().await?;
            let (won, at) = campaign.await?;
            leader = won?;
            times.push(at - resigned);
        }
        let after = server.operations();
        let rounds = f64::from(u32::try_from(handovers)?);
        let operations = after.zip(before).map(|(after, before)| (after - before) / rounds);
        leader.resign().await?;
        let mut deaths = Vec::new();
        for _ in 0..crashes {
            deaths.push(crash(&url).await?);
        }
        Ok(Self { first, handovers: times, operations, crashes: deaths })
    }
}

/// Kills a process that leads, while another candidate waits.
async fn crash(url: &str) -> Result<Duration, Box<dyn Error>> {
    let mut victim = Command::new(std::env::current_exe()?)
        .args([VICTIM, url])
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()?;
    let said = victim.stdout.take().ok_or("no output")?;
    let mut line = String::new();
    BufReader::new(said).read_line(&mut line)?;
    let candidate = elections(url, "elections").await?.candidate(NAME, settings("heir"))?;
    let mut observer = candidate.observe();
    let campaign = tokio::spawn(async move {
        let won = candidate.campaign().await;
        (won, boot_time())
    });
    while observer.changed().await.is_none() {}
    let killed = boot_time();
    victim.kill()?;
    victim.wait()?;
    let (won, at) = campaign.await?;
    won?.resign().await?;
    Ok(at - killed)
}

/// Leads, says so, and waits for its death.
#[expect(clippy::print_stdout, reason = "the one who started it waits for this")]
pub(crate) async fn be_the_victim(url: &str) -> Result<(), Box<dyn Error>> {
    let candidate = elections(url, "elections").await?.candidate(NAME, settings("victim"))?;
    let leadership = candidate.campaign().await?;
    println!("leading with {}", leadership.token());
    // If whoever started it is gone, so is the other end of this.
    let mut line = String::new();
    tokio::task::spawn_blocking(move || std::io::stdin().read_line(&mut line)).await??;
    Ok(())
}
