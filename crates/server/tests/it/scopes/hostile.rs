//! Leaders that are none: whoever can write to the store names an address, and answers there.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use frazil::coord::internal::time::unix_ms;
use frazil::election::Leadership;
use frazil_id::Layout;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::peers::lead_as;
use super::*;

/// What it answers to a request.
#[derive(Clone, Debug)]
struct Script {
    status: u16,
    /// `None`: as many as are asked for, as a leader would issue them now.
    ids: Option<Vec<u64>>,
    node: &'static str,
    /// How far the token is from the one in the store; `None`: it does not say.
    token: Option<i64>,
    repeats_nonce: bool,
    body: Vec<u8>,
}

const GOOD: Script = Script {
    status: 200,
    ids: None,
    node: "impostor",
    token: Some(0),
    repeats_nonce: true,
    body: Vec::new(),
};

/// Leads the scope in the store, without being a node.
struct Impostor {
    leadership: Leadership,
    script: Arc<Mutex<Script>>,
    asked: Arc<AtomicUsize>,
    /// Answers are given one for each permit.
    permits: Arc<Semaphore>,
}

impl Impostor {
    async fn lead(place: &Place) -> Self {
        place.site("first", |_| {}).await.stop().await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let leadership = lead_as(place, &format!("http://{address}")).await;
        let (script, asked) = (Arc::new(Mutex::new(GOOD)), Arc::new(AtomicUsize::new(0)));
        let permits = Arc::new(Semaphore::new(Semaphore::MAX_PERMITS));
        let served = Served {
            token: leadership.token().0,
            script: script.clone(),
            asked: asked.clone(),
            permits: permits.clone(),
            last: Arc::new(AtomicU64::new(0)),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(served.clone().answer_all(stream));
            }
        });
        Self { leadership, script, asked, permits }
    }

    fn play(&self, script: Script) {
        *self.script.lock().unwrap() = script;
        self.asked.store(0, Ordering::SeqCst);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

#[derive(Clone)]
struct Served {
    token: u64,
    script: Arc<Mutex<Script>>,
    asked: Arc<AtomicUsize>,
    permits: Arc<Semaphore>,
    last: Arc<AtomicU64>,
}

impl Served {
    async fn answer_all(self, mut stream: TcpStream) {
        let mut bytes = vec![0; 4096];
        loop {
            let Ok(count @ 1..) = stream.read(&mut bytes).await else { return };
            // A node's request fits into one segment.
            let head = String::from_utf8_lossy(&bytes[..count]).into_owned();
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.permits.acquire().await.unwrap().forget();
            let answer = self.answer(&head);
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
    }

    fn answer(&self, head: &str) -> Vec<u8> {
        let script = self.script.lock().unwrap().clone();
        let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        let query = head.split(' ').nth(1).unwrap();
        let count = query.split(['=', '&']).nth(1).unwrap().parse().unwrap();
        let body = match script.status {
            200 => script.ids.unwrap_or_else(|| self.issue(count)),
            _ => Vec::new(),
        };
        let mut body: Vec<u8> = body.iter().flat_map(|id| id.to_be_bytes()).collect();
        body.extend(script.body);
        let mut answer = format!(
            "HTTP/1.1 {} X\r\ncontent-type: application/octet-stream\r\ncontent-length: {}\r\n\
             frazil-node: {}\r\nfrazil-token: 7\r\n",
            script.status,
            body.len(),
            script.node
        );
        if script.repeats_nonce {
            answer += &format!("frazil-nonce: {}\r\n", header("frazil-nonce: "));
        }
        if let Some(offset) = script.token {
            let token = self.token.saturating_add_signed(offset);
            answer += &format!("frazil-leader-token: {token}\r\n");
        }
        [answer.as_bytes(), b"\r\n", &body].concat()
    }

    /// IDs of worker 1, as a leader would issue them now.
    fn issue(&self, count: u64) -> Vec<u64> {
        let last = self.last.load(Ordering::SeqCst);
        let first = issued_at(0).max(last + 1);
        self.last.store(first + count - 1, Ordering::SeqCst);
        (first..first + count).collect()
    }
}

/// The first ID of worker 1 at a time so many milliseconds from now.
fn issued_at(offset_ms: i64) -> u64 {
    let tick = unix_ms().saturating_add_signed(offset_ms) - Layout::FRAZIL.epoch_ms();
    (tick << 22) | (1 << 12)
}

fn patient(max_wait_ms: u64) -> impl FnOnce(&mut Config) {
    move |config| config.limits.max_wait = Duration::from_millis(max_wait_ms)
}

#[tokio::test]
async fn a_forged_leader_does_not_make_a_node_hand_out_what_no_leader_issues() {
    let place = Place::new();
    let impostor = Impostor::lead(&place).await;
    let site = place.site("two", patient(200)).await;
    led_by(&site, "impostor").await;
    let sent = |ids: Vec<u64>| Script { ids: Some(ids), ..GOOD };
    // The control, and what is handed out first.
    let first = ids(&site.post("/ids?scope=orders").await).ids[0].to_u64();
    let now = issued_at(0);
    let forged: [(&str, Script); 13] = [
        ("an ID of long ago", sent(vec![1])),
        ("the same ID again", sent(vec![first])),
        ("a lower one", sent(vec![first - 1])),
        ("one of the future", sent(vec![issued_at(60_000)])),
        ("one that is none", sent(vec![u64::MAX])),
        ("too many", sent(vec![now + 100, now + 101])),
        ("none", sent(vec![])),
        ("another node", Script { node: "another", ..GOOD }),
        ("a token before", Script { token: Some(-1), ..GOOD }),
        ("a token after", Script { token: Some(1), ..GOOD }),
        ("no token", Script { token: None, ..GOOD }),
        ("an answer that was kept", Script { repeats_nonce: false, ..GOOD }),
        ("half an ID", Script { body: vec![0; 4], ..GOOD }),
    ];
    let mut last = first;
    for (what, script) in forged {
        impostor.play(script);
        let reply = site.post("/ids?scope=orders").await;
        assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"), "{what}");
        assert!(impostor.asked() > 0, "{what}");
        // Afterwards all is as it was.
        impostor.play(GOOD);
        let reply = until("an ID", || async {
            Some(site.post("/ids?scope=orders").await).filter(|reply| reply.status == 200)
        });
        let id = ids(&reply.await).ids[0].to_u64();
        assert!(id > last, "{what}: {id} after {last}");
        last = id;
    }
    // Batches: in order, of one worker.
    for wrong in [[now + 5000, now + 4999], [now + 5000, now + 5000], [now, now + (1 << 12)]] {
        let shift = issued_at(0) - now;
        impostor.play(sent(wrong.map(|id| id + shift).to_vec()));
        let reply = site.post("/ids?scope=orders&count=2").await;
        assert_eq!(reply.status, 503, "{wrong:?}");
    }
    drop(impostor.leadership);
    site.stop().await.unwrap();
}

/// What a node led by itself is not undone by who comes after it.
#[tokio::test]
async fn a_forged_leader_does_not_go_below_what_the_node_issued_itself() {
    let place = Place::new();
    let impostor = Impostor::lead(&place).await;
    let site = place.site("two", patient(200)).await;
    led_by(&site, "impostor").await;
    let forwarded = ids(&site.post("/ids?scope=orders").await).ids[0];
    // As far ahead as is believed at all.
    let ahead = issued_at(2000);
    impostor.play(Script { ids: Some(vec![ahead]), ..GOOD });
    assert_eq!(ids(&site.post("/ids?scope=orders").await).ids[0].to_u64(), ahead);
    impostor.leadership.resign_at(0).await.unwrap();
    led_by(&site, "two").await;
    let own = until("an ID", || async {
        Some(site.post("/ids?scope=orders").await).filter(|reply| reply.status == 200)
    });
    let own = ids(&own.await);
    assert_eq!(own.metadata.node, "two");
    assert!(own.ids[0] > forwarded && own.ids[0].to_u64() > ahead, "{} {ahead}", own.ids[0]);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_leader_that_fails_is_asked_a_few_times_however_many_requests_wait() {
    let place = Place::new();
    let impostor = Impostor::lead(&place).await;
    let site = place.site("two", patient(2000)).await;
    led_by(&site, "impostor").await;
    impostor.play(Script { status: 500, ..GOOD });
    let mut asking = tokio::task::JoinSet::new();
    let address = site.http();
    for _ in 0..20 {
        asking.spawn(async move { request(address, "POST", "/ids?scope=orders", &[], b"").await });
    }
    for reply in asking.join_all().await {
        assert_eq!((reply.status, reply.reason().as_str()), (503, "NO_LEADER"));
    }
    assert!((2..=8).contains(&impostor.asked()), "asked {} times", impostor.asked());
    drop(impostor.leadership);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn requests_that_wait_for_a_leader_are_asked_for_together() {
    const MORE: usize = 20;
    let place = Place::new();
    let impostor = Impostor::lead(&place).await;
    let site = place.site("two", |_| {}).await;
    led_by(&site, "impostor").await;
    impostor.permits.forget_permits(Semaphore::MAX_PERMITS);
    let (mut asking, address) = (tokio::task::JoinSet::new(), site.http());
    let mut ask = |count: usize| {
        let path = format!("/ids?scope=orders&count={count}");
        asking.spawn(async move { request(address, "POST", &path, &[], b"").await });
    };
    ask(1);
    until("a request", || async { (impostor.asked() == 1).then_some(()) }).await;
    (1..=MORE).for_each(&mut ask);
    let waiting = "frazil_requests_in_flight";
    until("all requests", || async {
        (site.metric(waiting).await > MORE as f64 + 0.5).then_some(())
    })
    .await;
    impostor.permits.add_permits(Semaphore::MAX_PERMITS);
    let mut all: Vec<u64> = Vec::new();
    for reply in asking.join_all().await {
        let reply = ids(&reply);
        assert_eq!(reply.ids.len() as u64, reply.count);
        assert!(reply.ids.is_sorted_by(|one, other| one < other));
        all.extend(reply.ids.iter().map(|id| id.to_u64()));
    }
    assert_eq!(all.len(), 1 + MORE * (MORE + 1) / 2);
    all.sort_unstable();
    assert!(all.is_sorted_by(|one, other| one < other), "an ID was handed out twice");
    assert!(impostor.asked() <= 3, "asked {} times", impostor.asked());
    drop(impostor.leadership);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn what_a_rogue_leader_says_reaches_clients_bounded_and_escaped() {
    let place = Place::new();
    let impostor = Impostor::lead(&place).await;
    let site = place.site("two", |_| {}).await;
    led_by(&site, "impostor").await;
    let detail = format!("\u{1b}[2J\u{9b}31m\u{202e}{}", "x".repeat(10_000));
    let overloaded = frazil_wire::ApiError::new(frazil_wire::Reason::Overloaded, detail);
    let mut problem = overloaded.to_problem();
    problem.retry_after_ms = Some(u64::MAX);
    let body = serde_json::to_vec(&problem).unwrap();
    impostor.play(Script { status: 503, body, ..GOOD });
    let reply = site.post("/ids?scope=orders").await;
    assert_eq!(reply.reason(), "OVERLOADED");
    let told: frazil_wire::Problem = serde_json::from_slice(&reply.body).unwrap();
    assert!(told.retry_after_ms.unwrap() <= 10_000, "{:?}", told.retry_after_ms);
    assert!(told.detail.len() < 1000);
    let unprinted = |c: char| c.is_control() || c == '\u{202e}';
    assert!(!told.detail.contains(unprinted), "{:?}", told.detail);
    drop(impostor.leadership);
    site.stop().await.unwrap();
}
