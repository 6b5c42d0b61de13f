//! Strict scopes: IDs that increase across lanes, workers and nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use frazil::coord::FirstUse;
use frazil::coord::UnixMs;
use frazil::coord::internal::time::unix_ms;
use frazil::id::Options;
use frazil::{Id, Issued, Layout, Node, NotIssued, NotScoped, ScopeAuthority, Strict};

/// A right that is given and taken by hand.
#[derive(Debug)]
struct Right {
    floor: UnixMs,
    horizon: AtomicU64,
    is_valid: AtomicBool,
}

impl Right {
    /// One for the next minute.
    fn above(floor: UnixMs) -> Arc<Self> {
        let horizon = AtomicU64::new(unix_ms() + 60_000);
        Arc::new(Self { floor, horizon, is_valid: AtomicBool::new(true) })
    }
}

impl ScopeAuthority for Right {
    fn is_valid(&self) -> bool {
        self.is_valid.load(Ordering::Relaxed)
    }

    fn floor(&self) -> UnixMs {
        self.floor
    }

    fn horizon(&self) -> UnixMs {
        self.horizon.load(Ordering::Relaxed)
    }
}

struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    /// A node whose IDs may run ahead of the clock.
    async fn node(&self, lanes: usize, ahead: Duration) -> Node {
        let options = Options::default().with_max_ahead(ahead);
        let store = format!("file:{}", self.directory.path().display());
        let node = Node::builder().store(&store).lanes(lanes).options(options);
        // These tests set floors near now.
        node.first_use(FirstUse::AtOnce).start().await.unwrap()
    }
}

const AHEAD: Duration = Duration::from_secs(5);

/// IDs as soon as there are so many.
async fn issued(strict: &Strict<Arc<Right>>, n: u32) -> Issued {
    let mut partly = None;
    loop {
        match strict.try_fill(&mut partly, n) {
            Ok(issued) => return issued,
            Err(NotScoped::NotIssued(NotIssued::NotReady(why))) if why.is_brief() => {
                tokio::task::yield_now().await;
            }
            Err(why) => panic!("{why}"),
        }
    }
}

fn ends(issued: &Issued) -> (Id, Id) {
    issued.batch.ends().unwrap()
}

#[tokio::test]
async fn nothing_is_issued_up_to_the_floor_or_past_the_horizon() {
    let place = Place::new();
    let node = place.node(1, Duration::ZERO).await;
    let now = unix_ms();
    let right = Arc::new(Right {
        floor: now + 150,
        horizon: AtomicU64::new(now + 200),
        is_valid: AtomicBool::new(true),
    });
    let strict = Strict::new(node.clone(), right.clone());
    let early = strict.try_up_to(1).unwrap_err();
    let NotScoped::Floor { retry_after } = early else { panic!("{early:?}") };
    assert!(retry_after <= Duration::from_millis(152), "{retry_after:?}");
    let mut times = Vec::new();
    loop {
        match strict.try_up_to(1) {
            Ok(some) => {
                let parts = ends(&some).0.parts(&Layout::FRAZIL).unwrap();
                times.push(Layout::FRAZIL.unix_ms(parts.tick));
            }
            Err(NotScoped::Horizon) => break,
            Err(_) => tokio::task::yield_now().await,
        }
    }
    assert!(times.iter().all(|time| (now + 151..=now + 200).contains(time)), "{times:?}");
    assert!(!times.is_empty());
    // A plain ID is not held up by what the scope waits for.
    node.next().await.unwrap();
    right.horizon.store(unix_ms() + 60_000, Ordering::Relaxed);
    issued(&strict, 1).await;
}

#[tokio::test]
async fn whoever_is_not_entitled_any_more_issues_nothing() {
    let place = Place::new();
    let node = place.node(1, Duration::ZERO).await;
    let right = Right::above(0);
    let strict = Strict::new(node.clone(), right.clone());
    issued(&strict, 1).await;
    right.is_valid.store(false, Ordering::Relaxed);
    assert_eq!(strict.try_up_to(1), Err(NotScoped::NotHeld));
    right.is_valid.store(true, Ordering::Relaxed);
    let last = ends(&issued(&strict, 3).await).1;
    // What was closed stays closed, and the last time is that of the last ID.
    let time = Layout::FRAZIL.unix_ms(last.parts(&Layout::FRAZIL).unwrap().tick);
    assert_eq!(strict.close(), time);
    assert_eq!(strict.try_up_to(1), Err(NotScoped::NotHeld));
    assert_eq!(Strict::new(node, Right::above(0)).close(), 0);
}

/// Two nodes; the first one's IDs have run ahead of the clock when the second takes over, which is
/// given a floor. Whether the second one's are larger.
async fn hand_over(floor: impl Fn(UnixMs) -> UnixMs) -> bool {
    let place = Place::new();
    let (one, two) = (place.node(1, AHEAD).await, place.node(1, AHEAD).await);
    let first = Strict::new(one, Right::above(0));
    let last = ends(&issued(&first, 4096 * 500).await).1;
    let second = Strict::new(two, Right::above(floor(first.close())));
    ends(&issued(&second, 1).await).0 > last
}

#[tokio::test]
async fn the_next_one_starts_above_the_last_time_of_the_one_before() {
    assert!(hand_over(|last| last).await);
}

/// The control of the one above.
#[tokio::test]
async fn without_the_floor_the_next_one_goes_back() {
    assert!(!hand_over(|_| 0).await);
}

#[tokio::test]
async fn a_batch_larger_than_the_open_ticks_is_whole_sorted_and_of_one_worker() {
    let place = Place::new();
    let node = place.node(2, Duration::ZERO).await;
    let strict = Strict::new(node, Right::above(0));
    let before = ends(&issued(&strict, 1).await).1;
    let many = issued(&strict, 4096 * 3).await;
    assert_eq!(many.batch.len(), 4096 * 3);
    assert!(many.batch.iter().is_sorted() && ends(&many).0 > before);
    let worker = |id: Id| id.parts(&Layout::FRAZIL).unwrap().worker;
    assert!(many.batch.iter().all(|id| worker(id) == u64::from(many.worker)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ids_increase_while_the_lane_moves_to_other_workers_and_others_issue() {
    let place = Place::new();
    let node = place.node(2, Duration::from_millis(10)).await;
    let strict = Arc::new(Strict::new(node.clone(), Right::above(0)));
    let is_done = Arc::new(AtomicBool::new(false));
    let plain = tokio::task::spawn_blocking({
        let (node, is_done) = (node.clone(), is_done.clone());
        move || {
            while !is_done.load(Ordering::Relaxed) {
                let _ = node.try_up_to(7);
            }
        }
    });
    let scoped = tokio::task::spawn_blocking({
        let (strict, is_done) = (strict.clone(), is_done.clone());
        move || {
            let (mut last, mut workers) = (Id::from_u64(0), std::collections::BTreeSet::new());
            while !is_done.load(Ordering::Relaxed) {
                let Ok(some) = strict.try_up_to(3) else { continue };
                let (first, end) = some.batch.ends().unwrap();
                assert!(first > last, "{first} after {last}");
                last = end;
                workers.insert(some.worker);
            }
            workers.len()
        }
    });
    let mut rotated = Ok(Vec::new());
    for _ in 0..20 {
        rotated = rotated.and(node.rotate(None, Duration::from_secs(10)).await);
    }
    // The threads end whatever happened.
    is_done.store(true, Ordering::Relaxed);
    rotated.unwrap();
    plain.await.unwrap();
    assert!(scoped.await.unwrap() > 5);
}
