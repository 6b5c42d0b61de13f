//! One request with all its attempts: which server, for how long, and whether again.

use std::sync::Arc;
use std::time::Duration;

use frazil_id::Id;
use frazil_wire::Reason;
use tokio::time::{Instant, sleep_until};

use crate::ask::{Answer, Ask};
use crate::clock;
use crate::discovery;
use crate::error::Error;
use crate::host::{Host, Request, Response};
use crate::inner::Inner;
use crate::observer::Event;
use crate::secret::Key;
use crate::server_info::ServerInfo;
use crate::state::State;

/// How long a probe may take.
const PROBE_LIMIT: Duration = Duration::from_secs(1);

/// Exactly so many IDs, in as many requests as the servers' limit makes necessary.
pub(crate) async fn exactly(
    inner: &Arc<Inner>,
    state: &Arc<State>,
    count: usize,
    deadline: Instant,
) -> Result<Vec<Id>, Error> {
    ensure_known(inner, state, deadline).await?;
    let mut all: Vec<Id> = Vec::new();
    while all.len() < count {
        let wanted = u32::try_from(count - all.len()).unwrap_or(u32::MAX);
        let size = inner.limit.size(wanted, clock::boot_ns());
        match call(inner, state, Request::Ids(size), deadline).await {
            Ok(Response::Ids(ids)) => {
                inner.limit.granted(size);
                if all.is_empty() {
                    all = ids;
                } else {
                    all.extend(ids);
                }
            }
            Ok(_) => {}
            // Another server may have another limit.
            Err(error) if error.reason() == Some(Reason::CountOutOfRange) && size > 1 => {
                inner.limit.refused(size, clock::boot_ns());
            }
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// What a server is; noted for decoding and for the sizes of requests.
pub(crate) async fn info(
    inner: &Arc<Inner>,
    state: &Arc<State>,
    deadline: Instant,
) -> Result<ServerInfo, Error> {
    loop {
        if let Response::Info(info) = call(inner, state, Request::Info, deadline).await? {
            inner.learn(&info)?;
            return Ok(*info);
        }
    }
}

/// Asks once for what requests need to know.
pub(crate) async fn ensure_known(
    inner: &Arc<Inner>,
    state: &Arc<State>,
    deadline: Instant,
) -> Result<(), Error> {
    if inner.limit.known().is_some() {
        return Ok(());
    }
    match info(inner, state, deadline).await {
        Ok(_) => Ok(()),
        // IDs may be had all the same, through a proxy that lets nothing else pass.
        Err(Error::Refused { error, .. }) if !error.reason.is_retryable() => {
            inner.limit.assume();
            Ok(())
        }
        Err(Error::Broken { status: Some(404), .. }) => {
            inner.limit.assume();
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// What a server answers to another question.
pub(crate) async fn other(
    inner: &Arc<Inner>,
    state: &Arc<State>,
    ask: Ask,
    deadline: Instant,
) -> Result<Answer, Error> {
    let request = Request::Other(Arc::new(ask));
    if !state.hosts.all().iter().any(|host| request.suits(host)) {
        return Err(Error::invalid("this is asked over HTTP: name an http:// endpoint"));
    }
    loop {
        if let Response::Other(answer) = call(inner, state, request.clone(), deadline).await? {
            return Ok(answer);
        }
    }
}

/// One request: at one server, and at others or again while that may help.
async fn call(
    inner: &Arc<Inner>,
    state: &Arc<State>,
    request: Request,
    deadline: Instant,
) -> Result<Response, Error> {
    state.counters.requests.one();
    state.budget.earn();
    let mut before: Option<(Arc<Host>, Error)> = None;
    let mut may_renew = true;
    loop {
        state.check_open()?;
        let tried = before.as_ref().map(|(host, _)| host);
        let host = match pick(inner, state, &request, tried) {
            HostChoice::Host(host) => host,
            HostChoice::AllBackOff(until_ns) => {
                let last = before.as_ref().map(|(_, error)| error);
                rest(inner, state, until_ns, deadline, last).await?;
                continue;
            }
        };
        if let Some((last, _)) = &before {
            let is_failover = !Arc::ptr_eq(last, &host);
            state.note(&Event::Retried { endpoint: host.name(), is_failover });
        }
        let key = inner.key().map(|ring| ring.current());
        match attempt(inner, state, &host, &request, deadline).await {
            Ok(response) => return Ok(response),
            // It may have been rotated since it was read: that is looked up once.
            Err(error)
                if may_renew && is_renewed(inner, key.as_deref(), &error, deadline).await =>
            {
                if !state.budget.spend() {
                    return Err(error);
                }
                may_renew = false;
                before = Some((host, error));
            }
            Err(error) if !error.is_retryable() => return Err(error),
            Err(error) => {
                if Instant::now() >= deadline {
                    return Err(Error::late(inner.options.deadline, Some(error)));
                }
                if !request.is_repeatable() || !state.budget.spend() {
                    return Err(error);
                }
                before = Some((host, error));
            }
        }
    }
}

/// Whether a server does not take the key, and there is another one now.
async fn is_renewed(
    inner: &Arc<Inner>,
    refused: Option<&Key>,
    error: &Error,
    deadline: Instant,
) -> bool {
    let (Some(ring), Some(refused)) = (inner.key(), refused) else { return false };
    if error.reason() != Some(Reason::Unauthenticated) {
        return false;
    }
    let (ring, refused) = (ring.clone(), refused.clone());
    // A file may take its time.
    let renewing = tokio::task::spawn_blocking(move || ring.renew(&refused));
    matches!(tokio::time::timeout_at(deadline, renewing).await, Ok(Ok(true)))
}

/// Asks one server, and notes how it went.
async fn attempt(
    inner: &Arc<Inner>,
    state: &Arc<State>,
    host: &Host,
    request: &Request,
    deadline: Instant,
) -> Result<Response, Error> {
    let began = Instant::now();
    let left = deadline.saturating_duration_since(began);
    // A server that hangs must leave time for another one.
    let has_others =
        request.is_repeatable() && state.hosts.all().len() > 1 && !state.budget.is_empty();
    let within = if has_others { left / 2 } else { left };
    let layout = inner.layout();
    let asked = host.ask(request, layout.as_ref(), within).await;
    match &asked {
        Ok(response) => {
            host.health.succeeded();
            let ids = if let Response::Ids(ids) = response { ids.len() } else { 0 };
            let latency = began.elapsed();
            state.note(&Event::Answered { endpoint: host.name(), ids, latency });
            discovery::start_if_due(inner, state);
        }
        Err(error) => failed(inner, state, host, error),
    }
    asked
}

fn failed(inner: &Inner, state: &State, host: &Host, error: &Error) {
    if error.is_retryable() {
        let backoff = &inner.options.backoff;
        host.health.failed(clock::boot_ns(), error.retry_after(), backoff, fastrand::f64());
    } else {
        // It refuses, so it is well.
        host.health.succeeded();
    }
    state.note(&Event::Failed { endpoint: host.name(), error });
}

/// Which server to ask.
enum HostChoice {
    Host(Arc<Host>),
    /// All rest; the first of them until then.
    AllBackOff(u64),
}

/// A server that is well; not the one that was just asked if there are others, and one of our own zone
/// if there is one.
fn pick(
    inner: &Arc<Inner>,
    state: &Arc<State>,
    request: &Request,
    avoid: Option<&Arc<Host>>,
) -> HostChoice {
    let now = clock::boot_ns();
    let mut choice = state.hosts.choice(now, |host| request.suits(host));
    choice.narrow(avoid);
    let backoff = &inner.options.backoff;
    let probe = choice.to_be_probed.take();
    let probe = probe.filter(|host| host.health.begin_probe(now, backoff));
    match (choice.draw(), probe) {
        (None, Some(probed)) => HostChoice::Host(probed),
        (None, None) => HostChoice::AllBackOff(choice.earliest_ns),
        (Some(host), None) => HostChoice::Host(host),
        // Nobody waits for the probe while others are well.
        (Some(host), Some(probed)) => {
            probe_in_background(inner, state, probed);
            HostChoice::Host(host)
        }
    }
}

/// Looks whether a server is well again, while nobody waits for the answer.
fn probe_in_background(inner: &Arc<Inner>, state: &Arc<State>, host: Arc<Host>) {
    let Some(runtime) = inner.runtime() else { return };
    let (inner, state) = (inner.clone(), state.clone());
    runtime.spawn(async move {
        state.counters.requests.one();
        let began = Instant::now();
        match probe(&inner, &host, None).await {
            Ok(()) => {
                host.health.succeeded();
                let latency = began.elapsed();
                state.note(&Event::Answered { endpoint: host.name(), ids: 0, latency });
            }
            Err(error) => {
                // Whatever it is, it gives no IDs now.
                let backoff = &inner.options.backoff;
                let wait = error.retry_after();
                host.health.failed(clock::boot_ns(), wait, backoff, fastrand::f64());
                state.note(&Event::Failed { endpoint: host.name(), error: &error });
            }
        }
    });
}

/// Asks a server what it is. An error unless it gives IDs of our layout, and of this namespace if
/// one is named.
pub(crate) async fn probe(
    inner: &Inner,
    host: &Host,
    namespace: Option<&str>,
) -> Result<(), Error> {
    let layout = inner.layout();
    let Response::Info(info) = host.ask(&Request::Info, layout.as_ref(), PROBE_LIMIT).await? else {
        return Err(Error::broken(host.name(), "it does not say what it is"));
    };
    if !info.is_issuing() {
        let why = format_args!("it gives no IDs now: it is {}", info.state);
        return Err(Error::broken(host.name(), why));
    }
    if namespace.is_some_and(|namespace| namespace != info.namespace) {
        let why = format_args!("it is of another namespace: {}", info.namespace);
        return Err(Error::broken(host.name(), why));
    }
    inner.learn(&info)
}

/// Waits until a server has rested, if that is within the time.
async fn rest(
    inner: &Inner,
    state: &State,
    until_ns: u64,
    deadline: Instant,
    last: Option<&Error>,
) -> Result<(), Error> {
    // At least a moment, so that a race for a probe is no busy loop.
    let pause = Duration::from_nanos(until_ns.saturating_sub(clock::boot_ns()).max(1_000_000));
    let now = Instant::now();
    if now >= deadline {
        return Err(Error::late(inner.options.deadline, last.cloned()));
    }
    if now + pause >= deadline {
        let resting = || Error::Resting { retry_after: pause, last: state.last_failure() };
        return Err(last.cloned().unwrap_or_else(resting));
    }
    sleep_until(now + pause).await;
    Ok(())
}
