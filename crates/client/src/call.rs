//! One request with all its attempts: which server, for how long, and whether again.

use std::sync::Arc;
use std::time::Duration;

use frazil_id::Id;
use frazil_wire::Reason;
use tokio::time::{Instant, sleep_until};

use crate::clock;
use crate::error::Error;
use crate::health::Fitness;
use crate::host::{Gift, Wish};
use crate::observer::Event;
use crate::secret::Key;
use crate::server_info::ServerInfo;
use crate::shell::Shell;
use crate::state::State;

/// How long a probe may take.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// Exactly so many Ids, in as many requests as the servers' limit makes necessary.
pub(crate) async fn exactly(
    shell: &Arc<Shell>,
    state: &Arc<State>,
    count: usize,
    deadline: Instant,
) -> Result<Vec<Id>, Error> {
    ensure_known(shell, state, deadline).await?;
    let mut all: Vec<Id> = Vec::new();
    while all.len() < count {
        let limit = shell.limit().unwrap_or(1);
        let size = u32::try_from(count - all.len()).unwrap_or(limit).min(limit);
        match call(shell, state, Wish::Ids(size), deadline).await {
            Ok(Gift::Ids(ids)) if all.is_empty() => all = ids,
            Ok(Gift::Ids(ids)) => all.extend(ids),
            Ok(Gift::Info(_)) => {}
            // Another server may have another limit.
            Err(error) if error.reason() == Some(Reason::CountOutOfRange) && size > 1 => {
                shell.lower_limit(size);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// What a server is; noted for decoding and for the sizes of requests.
pub(crate) async fn info(
    shell: &Arc<Shell>,
    state: &Arc<State>,
    deadline: Instant,
) -> Result<ServerInfo, Error> {
    loop {
        if let Gift::Info(info) = call(shell, state, Wish::Info, deadline).await? {
            shell.learn(&info)?;
            return Ok(*info);
        }
    }
}

/// Asks once for what requests need to know.
pub(crate) async fn ensure_known(
    shell: &Arc<Shell>,
    state: &Arc<State>,
    deadline: Instant,
) -> Result<(), Error> {
    if shell.limit().is_some() {
        return Ok(());
    }
    match info(shell, state, deadline).await {
        Ok(_) => Ok(()),
        // Ids may be had all the same, through a proxy that lets nothing else pass.
        Err(Error::Refused { error, .. }) if !error.reason.is_retryable() => {
            shell.assume_limit();
            Ok(())
        }
        Err(Error::Broken { status: Some(404), .. }) => {
            shell.assume_limit();
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// One request: at one server, and at others or again while that may help.
async fn call(
    shell: &Arc<Shell>,
    state: &Arc<State>,
    wish: Wish,
    deadline: Instant,
) -> Result<Gift, Error> {
    state.counters.requests.one();
    state.budget.earn();
    let mut before: Option<(usize, Error)> = None;
    let mut may_renew = true;
    loop {
        state.check_open()?;
        let tried = before.as_ref().map(|(place, _)| *place);
        let place = match pick(shell, state, tried) {
            Pick::Host(place) => place,
            Pick::Rest(until_ns) => {
                rest(shell, until_ns, deadline, before.as_ref().map(|(_, error)| error)).await?;
                continue;
            }
        };
        if let Some((last, _)) = &before {
            retried(state, place, *last != place);
        }
        let key = shell.key().map(|ring| ring.current());
        match attempt(shell, state, place, wish, deadline).await {
            Ok(gift) => return Ok(gift),
            // It may have been rotated since it was read: that is looked up once.
            Err(error)
                if may_renew && is_renewed(shell, key.as_deref(), &error, deadline).await =>
            {
                if !state.budget.spend() {
                    return Err(error);
                }
                may_renew = false;
                before = Some((place, error));
            }
            Err(error) if !error.is_retryable() => return Err(error),
            Err(error) => {
                if Instant::now() >= deadline {
                    return Err(late(shell, Some(error)));
                }
                if !state.budget.spend() {
                    return Err(error);
                }
                before = Some((place, error));
            }
        }
    }
}

/// Whether a server does not take the key, and there is another one now.
async fn is_renewed(
    shell: &Arc<Shell>,
    refused: Option<&Key>,
    error: &Error,
    deadline: Instant,
) -> bool {
    let (Some(ring), Some(refused)) = (shell.key(), refused) else { return false };
    if error.reason() != Some(Reason::Unauthenticated) {
        return false;
    }
    let (ring, refused) = (ring.clone(), refused.clone());
    // A file may take its time.
    let renewing = tokio::task::spawn_blocking(move || ring.renew(&refused));
    matches!(tokio::time::timeout_at(deadline, renewing).await, Ok(Ok(true)))
}

fn retried(state: &State, place: usize, is_failover: bool) {
    state.counters.retries.one();
    if is_failover {
        state.counters.failovers.one();
    }
    state.tell(&Event::Retried { endpoint: state.hosts[place].name(), is_failover });
}

/// Asks one server, and notes how it went.
async fn attempt(
    shell: &Arc<Shell>,
    state: &Arc<State>,
    place: usize,
    wish: Wish,
    deadline: Instant,
) -> Result<Gift, Error> {
    let host = &state.hosts[place];
    let began = Instant::now();
    let left = deadline.saturating_duration_since(began);
    // A server that hangs must leave time for another one.
    let has_others = state.hosts.len() > 1 && !state.budget.is_empty();
    let within = if has_others { left / 2 } else { left };
    state.counters.attempts.one();
    let layout = shell.layout();
    let asked = host.ask(wish, layout.as_ref(), within).await;
    match &asked {
        Ok(gift) => {
            let latency = began.elapsed();
            host.health.succeeded();
            state.counters.answered(latency);
            let ids = if let Gift::Ids(ids) = gift { ids.len() } else { 0 };
            state.tell(&Event::Answered { endpoint: host.name(), ids, latency });
        }
        Err(error) => {
            state.counters.failures.one();
            if matches!(error, Error::Replayed { .. }) {
                state.counters.replays.one();
            }
            if error.is_retryable() {
                let backoff = &shell.options.backoff;
                let wait = error.retry_after();
                host.health.failed(clock::boot_ns(), wait, backoff, fastrand::f64());
            } else {
                // It refuses, so it is well.
                host.health.succeeded();
            }
            state.tell(&Event::Failed { endpoint: host.name(), error });
        }
    }
    asked
}

/// Which server to ask.
enum Pick {
    Host(usize),
    /// All rest; the first of them until then.
    Rest(u64),
}

/// Of two servers that are well, chosen by chance, the one with less to do; not the one that was
/// just asked if there are others.
fn pick(shell: &Arc<Shell>, state: &Arc<State>, avoid: Option<usize>) -> Pick {
    let now = clock::boot_ns();
    let mut well = Vec::with_capacity(state.hosts.len());
    let (mut probe, mut earliest) = (None, u64::MAX);
    for (place, host) in state.hosts.iter().enumerate() {
        match host.health.fitness(now) {
            Fitness::Well => well.push(place),
            Fitness::ToBeProbed => probe = Some(place),
            Fitness::Resting(until) => earliest = earliest.min(until),
        }
    }
    if well.len() > 1 {
        well.retain(|place| Some(*place) != avoid);
    }
    let backoff = &shell.options.backoff;
    let probe = probe.filter(|place| state.hosts[*place].health.begin_probe(now, backoff));
    match (well.len(), probe) {
        // Nobody waits for it while others are well.
        (1.., Some(probed)) => probe_aside(shell, state, probed),
        (0, Some(probed)) => return Pick::Host(probed),
        (0, None) => return Pick::Rest(earliest),
        (1.., None) => {}
    }
    let (one, other) = (well[fastrand::usize(..well.len())], well[fastrand::usize(..well.len())]);
    let is_busier = state.hosts[one].busy() > state.hosts[other].busy();
    Pick::Host(if is_busier { other } else { one })
}

/// Looks whether a server is well again, while nobody waits for the answer.
fn probe_aside(shell: &Arc<Shell>, state: &Arc<State>, place: usize) {
    let Some(runtime) = shell.runtime() else { return };
    let (shell, state) = (shell.clone(), state.clone());
    runtime.spawn(async move {
        state.counters.requests.one();
        state.counters.attempts.one();
        let host = &state.hosts[place];
        let layout = shell.layout();
        match host.ask(Wish::Info, layout.as_ref(), PROBE_LIMIT).await {
            Ok(Gift::Info(info)) if info.is_issuing() && shell.learn(&info).is_ok() => {
                host.health.succeeded();
            }
            _ => {
                state.counters.failures.one();
                let backoff = &shell.options.backoff;
                host.health.failed(clock::boot_ns(), None, backoff, fastrand::f64());
            }
        }
    });
}

/// Waits until a server has rested, if that is within the time.
async fn rest(
    shell: &Arc<Shell>,
    until_ns: u64,
    deadline: Instant,
    last: Option<&Error>,
) -> Result<(), Error> {
    // At least a moment, so that a race for a probe is no busy loop.
    let pause = Duration::from_nanos(until_ns.saturating_sub(clock::boot_ns()).max(1_000_000));
    let now = Instant::now();
    if now >= deadline {
        return Err(late(shell, last.cloned()));
    }
    if now + pause >= deadline {
        return Err(last.cloned().unwrap_or(Error::Resting { retry_after: pause }));
    }
    sleep_until(now + pause).await;
    Ok(())
}

fn late(shell: &Shell, last: Option<Error>) -> Error {
    let within = shell.options.deadline;
    // That an attempt took all the time says nothing more.
    let last = last.filter(|last| !matches!(last, Error::Late { last: None, .. }));
    Error::Late { within, last: last.map(Arc::new) }
}
