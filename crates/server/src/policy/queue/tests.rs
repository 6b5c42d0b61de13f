use std::sync::atomic::AtomicU32;

use frazil::coord::Token;
use frazil_id::{Batch, Id, Parts};

use super::*;

/// Gives IDs as it is told to, and counts how often it was asked.
#[derive(Clone, Debug)]
struct FakeSource(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// IDs that there are.
    ids: AtomicU32,
    given: AtomicU32,
    asked: AtomicU32,
    /// What is said when there are none.
    pause: Duration,
}

impl FakeSource {
    fn new(ids: u32, pause: Duration) -> Self {
        let (given, asked) = (AtomicU32::new(0), AtomicU32::new(0));
        Self(Arc::new(Inner { ids: AtomicU32::new(ids), given, asked, pause }))
    }

    fn open(&self, ids: u32) {
        self.0.ids.fetch_add(ids, Ordering::Relaxed);
    }
}

impl Source for FakeSource {
    fn add(&self, partly: &mut Option<Issued>, count: u32) -> Result<(), Stop> {
        self.0.asked.fetch_add(1, Ordering::Relaxed);
        let there = self.0.ids.load(Ordering::Relaxed).min(count);
        if there == 0 {
            return Err(Stop::Pause { after: self.0.pause, told: too_late("used up") });
        }
        self.0.ids.fetch_sub(there, Ordering::Relaxed);
        let first = self.0.given.fetch_add(there, Ordering::Relaxed);
        let id = |place: u32| {
            let (tick, sequence) = (u64::from(place / 4096), u64::from(place % 4096));
            Layout::FRAZIL.encode(Parts { tick, worker: 1, sequence }).unwrap()
        };
        let ids: Vec<Id> = (first..first + there).map(id).collect();
        let batch = Batch::from_ids(&Layout::FRAZIL, ids).unwrap();
        match partly {
            Some(some) => some.batch.join(batch).unwrap(),
            None => *partly = Some(Issued::elsewhere(batch, 1, Token(1))),
        }
        Ok(())
    }
}

const TICK: Duration = Duration::from_millis(1);

fn issue_request(key: u64, connection: u64, count: Count) -> IssueRequest {
    IssueRequest { count, patience: Duration::from_secs(60), flow: Flow { key, connection } }
}

fn queue() -> Arc<Queue> {
    Queue::new(Layout::FRAZIL, 1000)
}

#[tokio::test]
async fn who_waits_asks_nobody_and_is_served_together_with_the_others() {
    let (queue, tap) = (queue(), FakeSource::new(0, TICK));
    let waiting: Vec<_> = (0..500)
        .map(|connection| {
            queue.join(&tap, issue_request(0, connection, Count::Exactly(1)), 1).unwrap()
        })
        .collect();
    // Looks while there is nothing are looks of one request.
    while tap.0.asked.load(Ordering::Relaxed) < 5 {
        tokio::task::yield_now().await;
    }
    let before = tap.0.asked.load(Ordering::Relaxed);
    tap.open(500);
    for answer in waiting {
        assert_eq!(answer.await.unwrap().unwrap().batch.len(), 1);
    }
    let asked = tap.0.asked.load(Ordering::Relaxed) - before;
    assert!(asked < 510, "{asked} looks for 500 requests");
    assert!(queue.is_empty());
}

#[tokio::test]
async fn a_key_that_wants_little_does_not_wait_for_one_that_wants_much() {
    let (queue, tap) = (queue(), FakeSource::new(0, TICK));
    let flood: Vec<_> = (0..500)
        .map(|connection| {
            queue.join(&tap, issue_request(1, connection, Count::Exactly(100)), 1).unwrap()
        })
        .collect();
    let light = queue.join(&tap, issue_request(2, 1000, Count::Exactly(1)), 1).unwrap();
    // A quantum of the flood, and the one.
    tap.open(1024 + 1);
    assert_eq!(light.await.unwrap().unwrap().batch.len(), 1);
    drop(flood);
}

#[tokio::test]
async fn as_many_as_there_are_is_enough_for_who_says_so() {
    let (queue, tap) = (queue(), FakeSource::new(7, TICK));
    let some = queue.wait(&tap, issue_request(0, 1, Count::UpTo(64)), 1).await.unwrap();
    assert_eq!(some.batch.len(), 7);
    let exact = queue.join(&tap, issue_request(0, 1, Count::Exactly(20)), 1).unwrap();
    for _ in 0..20 {
        tap.open(1);
        tokio::task::yield_now().await;
    }
    assert_eq!(exact.await.unwrap().unwrap().batch.len(), 20);
}

#[tokio::test]
async fn who_cannot_be_served_in_time_hears_it_at_once() {
    let (queue, tap) = (queue(), FakeSource::new(0, Duration::from_secs(3600)));
    let refused = queue.wait(&tap, issue_request(0, 1, Count::Exactly(1)), 1).await.unwrap_err();
    assert_eq!(refused.error.reason, Reason::Deadline);
    // By what is waited for already: 4,096 of this layout are a millisecond.
    let tap = FakeSource::new(0, TICK);
    let _others: Vec<_> = (0..100)
        .map(|connection| {
            queue.join(&tap, issue_request(0, connection, Count::Exactly(40_960)), 1).unwrap()
        })
        .collect();
    let hurried = IssueRequest {
        patience: Duration::from_millis(500),
        ..issue_request(0, 500, Count::Exactly(1))
    };
    let refused = queue.join(&tap, hurried, 1).unwrap_err().error;
    assert_eq!(refused.reason, Reason::Overloaded);
    assert_eq!(refused.retry_after, Some(Duration::from_secs(1)));
    // Another key is not behind them.
    let other = IssueRequest { flow: Flow { key: 9, connection: 9 }, ..hurried };
    assert!(queue.join(&tap, other, 1).is_ok());
}

#[tokio::test]
async fn a_full_queue_has_places_for_other_keys() {
    let (queue, tap) = (queue(), FakeSource::new(0, TICK));
    let join =
        |key, connection| queue.join(&tap, issue_request(key, connection, Count::Exactly(1)), 1);
    let flood: Vec<_> = (0..1000).map(|connection| join(1, connection).unwrap()).collect();
    assert_eq!(join(1, 2000).unwrap_err().error.reason, Reason::Overloaded);
    assert!(join(2, 2000).is_ok());
    drop(flood);
}

#[tokio::test]
async fn who_is_gone_takes_nothing() {
    let (queue, tap) = (queue(), FakeSource::new(0, TICK));
    let gone = queue.join(&tap, issue_request(0, 1, Count::Exactly(10)), 1).unwrap();
    let stays = queue.join(&tap, issue_request(0, 2, Count::Exactly(1)), 1).unwrap();
    drop(gone);
    tap.open(5);
    stays.await.unwrap().unwrap();
    assert_eq!(tap.0.given.load(Ordering::Relaxed), 1);
}

#[test]
fn when_nobody_is_left_to_serve_them_those_who_wait_hear_it() {
    let (queue, tap) = (queue(), FakeSource::new(0, TICK));
    let serving = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut answer = None;
    serving.block_on(async {
        answer = Some(queue.join(&tap, issue_request(0, 1, Count::Exactly(1)), 1).unwrap());
        tokio::task::yield_now().await;
    });
    drop(serving);
    assert!(answer.unwrap().blocking_recv().is_err());
    assert!(queue.is_empty());
}

#[tokio::test]
async fn a_service_that_ends_takes_nobody_with_it_who_came_after() {
    let (queue, tap) = (queue(), FakeSource::new(1, TICK));
    let mut first = Service::new(queue.clone(), tap.clone());
    assert!(matches!(first.round(), NextStep::Done));
    let answer = queue.join(&tap, issue_request(0, 1, Count::Exactly(1)), 1).unwrap();
    drop(first);
    assert_eq!(answer.await.unwrap().unwrap().batch.len(), 1);
}
