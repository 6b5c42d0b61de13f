//! Strict scopes and elections, with nodes in this process.

mod hostile;
mod peers;

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use frazil::coord::StoreUrl;
use frazil_server::{App, BindError, Config, DeclaredScope};
use frazil_wire::proto::NextRequest;
use frazil_wire::proto::id_service_client::IdServiceClient;
use frazil_wire::{Cluster, Election, Elections, IdsReply, Info, ScopeKind};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tonic::transport::{Channel, Endpoint};

use crate::site::{Reply, Site, config, request};

/// Longer than anything here takes.
const LIMIT: Duration = Duration::from_secs(30);

/// Asks until there is something.
async fn until<T, F: Future<Output = Option<T>>>(what: &str, look: impl Fn() -> F) -> T {
    let looking = async {
        let mut beat = tokio::time::interval(Duration::from_millis(10));
        loop {
            if let Some(found) = look().await {
                return found;
            }
            beat.tick().await;
        }
    };
    tokio::time::timeout(LIMIT, looking).await.unwrap_or_else(|_| panic!("no {what}"))
}

/// A directory that several sites share.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn url(&self) -> StoreUrl {
        StoreUrl::file(self.0.path().display().to_string())
    }

    /// A node of it with a strict scope and a plain one.
    async fn site(&self, name: &str, change: impl FnOnce(&mut Config)) -> Site {
        Site::start_with(|config| {
            config.node = config.node.clone().store_url(self.url());
            config.name = name.to_owned();
            config.scopes = vec![DeclaredScope::strict("orders"), "web".into()];
            config.election_ttl = Duration::from_secs(2);
            change(config);
        })
        .await
    }

    /// Two nodes, the one that leads first.
    async fn pair(&self) -> (Site, Site) {
        let one = self.site("one", |_| {}).await;
        led_by(&one, "one").await;
        let two = self.site("two", |_| {}).await;
        led_by(&two, "one").await;
        (one, two)
    }
}

/// Waits until a node sees another one lead the scope.
async fn led_by(site: &Site, name: &str) {
    until("leader", || async {
        let info: Info = serde_json::from_slice(&site.get("/v1/info").await.body).unwrap();
        info.scopes[0].leader.clone().filter(|leader| leader.node == name)
    })
    .await;
}

async fn client(site: &Site) -> IdServiceClient<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", site.addrs.grpc.unwrap())).unwrap();
    IdServiceClient::new(endpoint.connect().await.unwrap())
}

fn ids(reply: &Reply) -> IdsReply {
    assert_eq!(reply.status, 200, "{}", reply.text());
    serde_json::from_slice(&reply.body).unwrap()
}

#[tokio::test]
async fn whichever_node_and_protocol_is_asked_the_leader_issues_and_ids_increase() {
    let place = Place::new();
    let (one, two) = place.pair().await;
    let mut last = 0;
    for turn in 0..40 {
        let site = if turn % 2 == 0 { &one } else { &two };
        let mut seen = Vec::new();
        let reply = ids(&site.post("/v1/ids?count=3&scope=orders").await);
        assert_eq!(reply.metadata.node, "one");
        assert_eq!(reply.metadata.scope.as_deref(), Some("orders"));
        seen.extend(reply.ids.iter().map(|id| id.to_u64()));
        let mut client = client(site).await;
        let wish = NextRequest { count: Some(2), scope: "orders".into(), ..Default::default() };
        let reply = client.next(wish).await.unwrap().into_inner();
        assert_eq!(reply.metadata.unwrap().node, "one");
        seen.extend(reply.ids);
        let mut stream =
            BufReader::new(TcpStream::connect(site.addrs.resp.unwrap()).await.unwrap());
        stream.get_mut().write_all(b"ID.NEXT SCOPE orders AS INT\r\n").await.unwrap();
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        seen.push(line.trim().trim_start_matches(':').parse().unwrap_or_else(|_| panic!("{line}")));
        for id in seen {
            assert!(id > last, "{id} after {last}");
            last = id;
        }
    }
    // A plain scope is issued where it is asked for.
    assert_eq!(ids(&two.post("/ids?scope=web").await).metadata.node, "two");
    let metric = async |site: &Site, name: &str| site.metric(name).await;
    let issued = "frazil_ids_issued_total{protocol=\"http\",scope=\"orders\"}";
    // What the second node was asked for over any protocol, the first one has issued over HTTP.
    assert!((metric(&one, issued).await - 180.0).abs() < 0.5);
    assert!((metric(&two, issued).await).abs() < 0.5);
    assert!(
        (metric(&two, "frazil_ids_forwarded_total{scope=\"orders\"}").await - 120.0).abs() < 0.5
    );
    assert!((metric(&one, "frazil_leader{election=\"scope:orders\"}").await - 1.0).abs() < 0.5);
    assert!((metric(&two, "frazil_leader{election=\"scope:orders\"}").await).abs() < 0.5);
    two.stop().await.unwrap();
    one.stop().await.unwrap();
}

#[tokio::test]
async fn large_batches_are_whole_wherever_they_are_asked_for() {
    let place = Place::new();
    let (one, two) = place.pair().await;
    let accept = [("accept", "application/octet-stream")];
    let mut last = 0;
    for site in [&one, &two, &one] {
        let reply =
            request(site.http(), "POST", "/ids?scope=orders&count=100000", &accept, b"").await;
        assert_eq!(reply.status, 200);
        // Whoever was asked, the headers tell of the one that issued.
        assert_eq!(reply.headers["frazil-node"], "one");
        let numbers: Vec<u64> = reply
            .body
            .chunks_exact(8)
            .map(|bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
            .collect();
        assert_eq!(numbers.len(), 100_000);
        assert!(numbers[0] > last && numbers.is_sorted_by(|one, other| one < other));
        last = numbers[99_999];
    }
    let most = two.post("/ids?scope=orders&count=100001").await;
    assert_eq!(most.reason(), "COUNT_OUT_OF_RANGE");
    assert_eq!(two.post("/ids?scope=nobody").await.reason(), "NOT_FOUND");
    two.stop().await.unwrap();
    one.stop().await.unwrap();
}

/// The leader is drained, and then stopped, while IDs are asked for.
#[tokio::test]
async fn leadership_moves_without_a_failure_when_the_leader_is_drained() {
    let place = Place::new();
    let (one, two) = place.pair().await;
    let mut last = 0;
    let mut next = async |site: &Site| {
        let reply = ids(&site.post("/ids?scope=orders").await);
        let id = reply.ids[0].to_u64();
        assert!(id > last, "{id} after {last}");
        last = id;
        reply.metadata.node
    };
    for _ in 0..20 {
        next(&one).await;
        next(&two).await;
    }
    let mut one = one;
    one.ask_to_stop();
    let mut nodes = Vec::new();
    while nodes.last().is_none_or(|node| node != "two") {
        nodes.push(next(&two).await);
    }
    one.ended().await.unwrap();
    // What was released is taken at once: the horizon came down to the last ID.
    let back = place.site("three", |_| {}).await;
    led_by(&back, "two").await;
    for _ in 0..20 {
        assert_eq!(next(&back).await, "two");
        assert_eq!(next(&two).await, "two");
    }
    back.stop().await.unwrap();
    two.stop().await.unwrap();
}

#[tokio::test]
async fn a_node_that_takes_a_strict_scope_for_a_plain_one_refuses_it() {
    let place = Place::new();
    let (one, _two) = place.pair().await;
    let plain = |config: &mut Config| config.scopes = vec!["orders".into(), "web".into()];
    let three = place.site("three", plain).await;
    // Its own IDs would break the order of the others'.
    let refused = until("refusal", || async {
        let reply = three.post("/v1/ids?scope=orders").await;
        (reply.status != 200).then_some(reply)
    })
    .await;
    assert_eq!(refused.reason(), "NO_LEADER");
    assert!(refused.text().contains("--scope orders=strict"), "{}", refused.text());
    assert_eq!(three.post("/v1/ids?scope=web").await.status, 200);
    assert_eq!(one.post("/v1/ids?scope=orders").await.status, 200);
}

#[tokio::test]
async fn scopes_and_elections_are_told_of() {
    let place = Place::new();
    let (one, two) = place.pair().await;
    let cluster: Cluster = serde_json::from_slice(&two.get("/v1/cluster").await.body).unwrap();
    let kinds: Vec<_> =
        cluster.scopes.iter().map(|scope| (scope.name.as_str(), scope.kind)).collect();
    assert_eq!(kinds, [("orders", ScopeKind::Strict), ("web", ScopeKind::Plain)]);
    let leader = cluster.scopes[0].leader.clone().unwrap();
    assert_eq!(leader.advertise, Some(format!("http://{}", one.http())));
    assert_eq!(cluster.scopes[1].leader, None);
    let election: Election = until("leader of the cluster", || async {
        let reply = two.get("/v1/elections/frazil%3Acluster").await;
        serde_json::from_slice::<Election>(&reply.body).ok().filter(|e| e.leader_info.is_some())
    })
    .await;
    assert_eq!((election.name.as_str(), election.instance_id.as_str()), ("frazil:cluster", "two"));
    assert_eq!(election.is_leader, election.leader_info.unwrap().instance == "two");
    let all: Elections = serde_json::from_slice(&one.get("/v1/elections").await.body).unwrap();
    let names: Vec<_> = all.elections.iter().map(|election| election.name.as_str()).collect();
    assert_eq!(names, ["frazil:cluster", "scope:orders"]);
    let scope = one.get("/v1/elections/scope:orders").await;
    let scope: Election = serde_json::from_slice(&scope.body).unwrap();
    assert!(scope.is_leader && scope.leader_info.is_some());
    assert_eq!(one.get("/v1/elections/nobody").await.reason(), "NOT_FOUND");
    assert_eq!(one.get("/v1/elections/a%20b").await.reason(), "INVALID_ARGUMENT");
    assert_eq!(one.get("/v1/elections?x=1").await.reason(), "INVALID_ARGUMENT");
    let led = until("one leader", || async {
        let name = "frazil_leader{election=\"frazil:cluster\"}";
        let led = one.metric(name).await + two.metric(name).await;
        (led > 0.5).then_some(led)
    })
    .await;
    assert!(led < 1.5);
    let seen = "frazil_leader_transitions_total{election=\"scope:orders\"}";
    assert!(two.metric(seen).await >= 1.0);
    two.stop().await.unwrap();
    one.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_strict_scope_cannot_do_without_is_asked_for() {
    let bind = async |change: &dyn Fn(&mut Config)| {
        let place = Place::new();
        let mut config = config("memory:");
        config.node = config.node.store_url(place.url());
        config.scopes = vec![DeclaredScope::strict("orders")];
        change(&mut config);
        App::bind(config).await.map(drop).unwrap_err()
    };
    let memory = bind(&|config| {
        config.node = config.node.clone().store("memory:");
    });
    assert!(matches!(memory.await, BindError::StrictAlone(_)));
    let fixed = bind(&|config| {
        config.node = config.node.clone().store("static:7?state=/tmp");
    });
    assert!(matches!(fixed.await, BindError::StrictAlone(_)));
    assert!(matches!(bind(&|config| config.http = None).await, BindError::StrictUnreachable));
    let everywhere = bind(&|config| {
        config.http = Some(SocketAddr::from(([0, 0, 0, 0], 0)));
        config.insecure = true;
    });
    assert!(matches!(everywhere.await, BindError::StrictUnreachable));
    let brief = bind(&|config| config.election_ttl = Duration::from_millis(10)).await;
    assert!(matches!(brief, BindError::ElectionTtl(_)), "{brief}");
    let keys = crate::site::secured::Keys::new();
    let closed = bind(&|config| config.keys = Some(keys.path().into())).await;
    assert!(matches!(closed, BindError::StrictWithoutKey));
    let missing = bind(&|config| config.peer_key_file = Some("/nowhere/key".into())).await;
    assert!(format!("{missing:#}").contains("/nowhere/key"), "{missing}");
    let missing = bind(&|config| config.peer_ca = Some("/nowhere/ca".into())).await;
    assert!(format!("{missing:#}").contains("/nowhere/ca"), "{missing}");
    let bad = bind(&|config| config.scopes = vec![DeclaredScope::strict(".x")]).await;
    assert!(matches!(bad, BindError::Scope(_)));
}

#[tokio::test]
async fn the_leader_of_the_cluster_counts_workers_that_were_left() {
    use frazil::coord::internal::{Choice, Claim, Leasing};
    use frazil::coord::{Nonce, Slot, Version};
    let place = Place::new();
    // A node that is gone without a word: its lock is free, its mark is still there.
    Site::start_with(|config| config.node = config.node.clone().store_url(place.url()))
        .await
        .stop()
        .await
        .unwrap();
    {
        let store = frazil::coord::open(
            &place.url(),
            &frazil::coord::Namespace::default(),
            frazil::coord::Copied::Refuse,
        )
        .await
        .unwrap();
        let meta = store.meta().await.unwrap().unwrap();
        let now = frazil::coord::internal::time::unix_ms();
        let claim = Claim {
            choice: Choice::This(Slot::worker(7), Version(0)),
            nonce: Nonce::mint().unwrap(),
            holder: "gone".into(),
            ttl: Duration::from_secs(30),
            ask: now + 1000,
            ..Claim::to_judge(&meta, now)
        };
        let held = store.acquire(&claim).await.unwrap();
        assert!(matches!(held, frazil::coord::internal::Acquired::Held(_)), "{held:?}");
    }
    let site = place.site("one", |_| {}).await;
    let lapsed = "frazil_stale_slots{kind=\"lapsed\"}";
    until("stale slot", || async { (site.metric(lapsed).await > 0.5).then_some(()) }).await;
    site.stop().await.unwrap();
}
