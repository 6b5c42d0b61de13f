//! The one connection to the master of the namespace, found again when it is lost.
//!
//! A namespace is one hash tag, hence one hash slot, hence one master also in a cluster; so one
//! connection is all that any of the three kinds of set-up needs, WAIT is on the right one, and the
//! client library repeats nothing by itself.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, PushInfo, PushKind, RedisError};
use tokio::time::timeout;

use super::failure::FailureMeaning;
use super::keys::Keys;
use super::scripts::Script;
use super::server::Server;
use super::settings::{Address, Login, Settings};
use crate::error::{Error, ErrorKind};
use crate::sync::lock;
use crate::url::Scheme;

/// How often a cluster may send us elsewhere in one search: it names the owner, who may just have
/// changed.
const REDIRECTS_MAX: u32 = 4;

/// A connection to a master.
#[derive(Clone)]
pub(super) struct Link {
    pub(super) connection: MultiplexedConnection,
    pub(super) address: Address,
    pub(super) server: Arc<Server>,
    is_lost: Arc<AtomicBool>,
    /// The names of the scripts that went over it with their text.
    introduced: Arc<Mutex<HashSet<&'static str>>>,
}

/// Whom one meets behind an address.
enum ServerKind {
    Master(Box<Link>),
    Replica,
    /// Not the owner of the namespace's hash slot; the owner's address.
    Moved(String),
}

impl Link {
    /// Finds the master and enters it.
    pub(super) async fn open(settings: &Settings, keys: &Keys) -> Result<Self, Error> {
        match settings.url.scheme {
            // Boxed: whoever opens a store in the depth of a program would exceed the compiler's limit.
            Scheme::RedisSentinel => Box::pin(by_sentinels(settings, keys)).await,
            Scheme::RedisCluster => Box::pin(by_nodes(settings, keys)).await,
            _ => match identify(settings, keys, &settings.url.hosts[0]).await? {
                ServerKind::Master(link) => Ok(*link),
                ServerKind::Replica => {
                    let why = "the server is a replica: name the master, or use redis+sentinel:";
                    Err(settings.refused(ErrorKind::Unsafe, why))
                }
                ServerKind::Moved(_) => {
                    let why = "the server is a node of a cluster: use redis+cluster:";
                    Err(settings.url.unusable(why))
                }
            },
        }
    }

    /// Whether the connection is known to be gone.
    pub(super) fn is_lost(&self) -> bool {
        // Relaxed: only a hint that spares a request; what was sent decides by its answer.
        self.is_lost.load(Ordering::Relaxed)
    }

    pub(super) fn mark_lost(&self) {
        self.is_lost.store(true, Ordering::Relaxed);
    }

    /// Whether a script goes over this connection for the first time. A server that does not know its
    /// name would have to be asked twice, and what follows is served after it.
    pub(super) fn is_first_of(&self, script: &'static Script) -> bool {
        lock(&self.introduced).insert(script.name())
    }
}

/// A connection on which what the server pushes goes to `push`.
pub(super) async fn dial(
    settings: &Settings,
    address: &Address,
    login: Login,
    push: impl Fn(PushInfo) -> Result<(), RedisError> + Send + Sync + 'static,
) -> Result<MultiplexedConnection, Error> {
    let client = settings.client(address, login)?;
    // Every request has a limit of its own, from the outside.
    let config = AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_push_sender(push);
    let opened = client.get_multiplexed_async_connection_with_config(&config).await;
    opened.map_err(|error| settings.shut_out(&shown(address), &error))
}

/// The share of the time-out that each of several addresses gets, so that a silent one leaves time
/// for the others.
fn share(settings: &Settings) -> Duration {
    let addresses = u32::try_from(settings.url.hosts.len()).unwrap_or(u32::MAX);
    settings.timeout / addresses.saturating_add(1)
}

/// The first good answer of the hosts in turn, each of which has its share of the time.
async fn first_answer<'a, T, F>(
    settings: &'a Settings,
    kind: &str,
    ask: impl Fn(&'a Address) -> F,
) -> Result<T, Error>
where
    F: Future<Output = Result<T, Error>>,
{
    let mut last: Option<Error> = None;
    for host in &settings.url.hosts {
        let error = match timeout(share(settings), ask(host)).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => settings.silent(&format!("{kind} {}", shown(host))),
        };
        // Of two errors the one that waiting does not cure tells more.
        if last.as_ref().is_none_or(|known| known.kind().is_retryable()) {
            last = Some(error);
        }
    }
    Err(last.unwrap_or_else(|| settings.silent(&format!("no {kind}"))))
}

async fn by_sentinels(settings: &Settings, keys: &Keys) -> Result<Link, Error> {
    first_answer(settings, "sentinel", |sentinel| async move {
        let master = master_of(settings, sentinel).await?;
        match identify(settings, keys, &master).await? {
            ServerKind::Master(link) => Ok(*link),
            // The sentinel has not heard of a fail-over yet, or it is under way.
            ServerKind::Replica | ServerKind::Moved(_) => {
                let (sentinel, master) = (shown(sentinel), shown(&master));
                let why = format_args!("sentinel {sentinel} names {master}, which is no master");
                Err(settings.refused(ErrorKind::Unavailable, why))
            }
        }
    })
    .await
}

/// Asks a sentinel something about the master.
async fn ask_sentinel<T: FromRedisValue>(
    settings: &Settings,
    sentinel: &Address,
    question: &str,
) -> Result<T, Error> {
    let ask = |login: Login| async move {
        let mut connection = dial(settings, sentinel, login, |_| Ok(())).await?;
        let mut command = redis::cmd("SENTINEL");
        command.arg(question).arg(&settings.url.path);
        let answer = command.query_async::<T>(&mut connection).await;
        answer.map_err(|error| settings.shut_out(&shown(sentinel), &error))
    };
    match ask(Login::Nobody).await {
        Err(error) if error.kind() == ErrorKind::Denied && settings.secret.is_some() => {
            ask(Login::Own).await
        }
        answer => answer,
    }
}

async fn master_of(settings: &Settings, sentinel: &Address) -> Result<Address, Error> {
    let answer: Option<Address> =
        ask_sentinel(settings, sentinel, "GET-MASTER-ADDR-BY-NAME").await?;
    let unknown = || {
        settings
            .url
            .unusable(format_args!("the sentinels know no master called {:?}", settings.url.path))
    };
    answer.ok_or_else(unknown)
}

/// The addresses of all servers that could be promoted in the place of this master, as sentinels or
/// the cluster know them; those that are away too.
pub(super) async fn promotable(settings: &Settings, link: &Link) -> Result<Vec<String>, Error> {
    match settings.url.scheme {
        Scheme::RedisSentinel => {
            let replicas: Vec<HashMap<String, String>> =
                first_answer(settings, "sentinel", |sentinel| {
                    ask_sentinel(settings, sentinel, "REPLICAS")
                })
                .await?;
            Ok(replicas.iter().filter_map(promotable_address).collect())
        }
        Scheme::RedisCluster => {
            let mut connection = link.connection.clone();
            let nodes = redis::cmd("CLUSTER").arg("NODES").query_async(&mut connection).await;
            let nodes: String =
                nodes.map_err(|error| settings.shut_out(&shown(&link.address), &error))?;
            Ok(replicas_of_myself(&nodes))
        }
        _ => Ok(Vec::new()),
    }
}

/// The address of a replica, unless it is never promoted.
fn promotable_address(replica: &HashMap<String, String>) -> Option<String> {
    let may_be = replica.get("slave-priority").is_none_or(|priority| priority != "0");
    may_be.then(|| Some(format!("{}:{}", replica.get("ip")?, replica.get("port")?)))?
}

/// Of what `CLUSTER NODES` says: `ID HOST:PORT@BUS[,NAME] FLAGS MASTER ...` on each line. Those that
/// are never promoted do not count.
fn replicas_of_myself(nodes: &str) -> Vec<String> {
    let lines = || nodes.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let myself = lines().find_map(|words| match words[..] {
        [id, _, flags, ..] if flags.split(',').any(|flag| flag == "myself") => Some(id),
        _ => None,
    });
    let address = |place: &str| place.split(['@', ',']).next().unwrap_or_default().to_owned();
    lines()
        .filter_map(|words| match words[..] {
            [_, place, flags, master, ..] if Some(master) == myself => {
                (!flags.split(',').any(|flag| flag == "nofailover")).then(|| address(place))
            }
            _ => None,
        })
        .collect()
}

async fn by_nodes(settings: &Settings, keys: &Keys) -> Result<Link, Error> {
    first_answer(settings, "node", |node| async move {
        let mut address = node.clone();
        for _ in 0..REDIRECTS_MAX {
            match identify(settings, keys, &address).await? {
                ServerKind::Master(link) => return Ok(*link),
                ServerKind::Moved(owner) => address = owner_address(&owner, &address),
                ServerKind::Replica => break,
            }
        }
        let why = format_args!("{} does not lead to the owner of the slot", shown(node));
        Err(settings.refused(ErrorKind::Unavailable, why))
    })
    .await
}

/// Of `host:port`, where an empty host means the one that was asked.
fn owner_address(text: &str, asked: &Address) -> Address {
    let (host, port) = text.rsplit_once(':').unwrap_or((text, ""));
    let host = if host.is_empty() { asked.0.clone() } else { host.to_owned() };
    (host, port.parse().unwrap_or(asked.1))
}

/// Enters a server, and checks whether it may be relied upon.
async fn identify(
    settings: &Settings,
    keys: &Keys,
    address: &Address,
) -> Result<ServerKind, Error> {
    let is_lost = Arc::new(AtomicBool::new(false));
    let mark = is_lost.clone();
    let push = move |info: PushInfo| {
        if info.kind == PushKind::Disconnection {
            mark.store(true, Ordering::Relaxed);
        }
        Ok(())
    };
    let mut connection = dial(settings, address, Login::Own, push).await?;
    let probe = super::scripts::probe(keys);
    let missing: Vec<String> = match probe.query_async(&mut connection).await {
        Ok(missing) => missing,
        Err(error) => return not_master(settings, address, &error),
    };
    if !missing.is_empty() {
        return Err(denied(settings, keys, &missing.join(" ")));
    }
    let server = Server::ask(&mut connection).await;
    let server = server.map_err(|error| match FailureMeaning::of(&error) {
        FailureMeaning::Denied => denied(settings, keys, "+info"),
        _ => settings.shut_out(&shown(address), &error),
    })?;
    server.check_scheme(settings)?;
    if !server.is_master {
        return Ok(ServerKind::Replica);
    }
    server.check(settings)?;
    let (server, address) = (Arc::new(server), address.clone());
    let introduced = Arc::default();
    Ok(ServerKind::Master(Box::new(Link { connection, address, server, is_lost, introduced })))
}

fn not_master(
    settings: &Settings,
    address: &Address,
    error: &RedisError,
) -> Result<ServerKind, Error> {
    if let Some((owner, _)) = error.redirect_node()
        && FailureMeaning::of(error) == FailureMeaning::Elsewhere
    {
        return Ok(ServerKind::Moved(owner.to_owned()));
    }
    match FailureMeaning::of(error) {
        FailureMeaning::Elsewhere => Ok(ServerKind::Replica),
        FailureMeaning::Denied => {
            let rule = "the user needs +eval and the keys and channels of the prefix";
            let why = format_args!("{}: {rule}", shown(address));
            Err(settings.refused(ErrorKind::Denied, why).with_source(settings.redacted(error)))
        }
        _ => Err(settings.shut_out(&shown(address), error)),
    }
}

fn denied(settings: &Settings, keys: &Keys, rules: &str) -> Error {
    let why = format_args!(
        "the user lacks {rules}, for the keys and channels that begin with {}",
        keys.tag()
    );
    settings.refused(ErrorKind::Denied, why)
}

pub(super) fn shown((host, port): &Address) -> String {
    match host.contains(':') {
        true => format!("[{host}]:{port}"),
        false => format!("{host}:{port}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_replicas_of_the_node_that_was_asked_count_also_when_they_are_away() {
        let nodes = "\
            a1 10.0.0.1:7000@17000 myself,master - 0 0 1 connected 0-5460\n\
            b1 10.0.0.2:7000@17000 master - 0 0 2 connected 5461-10922\n\
            a2 10.0.0.3:7000@17000,host-3 slave a1 0 0 1 connected\n\
            a3 10.0.0.4:7000@17000 slave,fail a1 0 0 1 disconnected\n\
            a4 10.0.0.5:7000@17000 slave,nofailover a1 0 0 1 connected\n\
            b2 10.0.0.6:7000@17000 slave b1 0 0 2 connected\n";
        assert_eq!(replicas_of_myself(nodes), ["10.0.0.3:7000", "10.0.0.4:7000"]);
    }

    #[test]
    fn an_answer_that_is_not_understood_names_nobody() {
        assert!(replicas_of_myself("").is_empty());
        assert!(replicas_of_myself("nonsense\nmyself\n- - -").is_empty());
    }

    #[test]
    fn a_replica_with_priority_zero_is_never_promoted() {
        let replica = |priority: &str| {
            let fields = [("ip", "10.0.0.1"), ("port", "6379"), ("slave-priority", priority)];
            fields.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
        };
        assert_eq!(promotable_address(&replica("100")), Some("10.0.0.1:6379".into()));
        assert_eq!(promotable_address(&replica("0")), None);
    }
}
