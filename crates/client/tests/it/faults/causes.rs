//! What a client says of failures: causes that are kept, and events that agree with numbers.

use std::error::Error as _;
use std::sync::Arc;

use frazil_client::{Event, Observer, Stats};

use super::*;

/// What an error rests on, the first cause first.
fn causes(error: &Error) -> Vec<String> {
    std::iter::successors(error.source(), |cause| (*cause).source())
        .map(ToString::to_string)
        .collect()
}

async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

#[tokio::test]
async fn whoever_gets_no_id_learns_why_the_last_attempt_failed() {
    let (one, two) = (nobody().await, nobody().await);
    let within = Duration::from_millis(300);
    // However it ends: the time is over, the budget is, or all rest.
    let pauses = [1, 200, 60_000].map(Duration::from_millis);
    for pause in pauses {
        let client = direct([one.clone(), two.clone()]).deadline(within).backoff(pause..=pause);
        let client = client.build().unwrap();
        for _ in 0..4 {
            let error = client.next().await.unwrap_err();
            let causes = causes(&error);
            let last = causes.last().unwrap_or_else(|| panic!("{error:?} has no cause"));
            assert!(last.to_lowercase().contains("connection refused"), "{error:?}");
            assert!(!error.to_string().contains("refused"), "once is enough: {error}");
            assert!(format!("{error:#}").contains(last), "{error:#}");
        }
    }
}

#[tokio::test]
async fn a_server_that_hangs_is_named_as_the_cause() {
    let stuck = Impostor::start(|_| Act::Silence).await;
    let client = direct([stuck.url()]).deadline(Duration::from_millis(200)).build().unwrap();
    let error = client.batch(1).await.unwrap_err();
    assert!(matches!(error, Error::Late { .. }), "{error:?}");
    let causes = causes(&error);
    assert!(causes[0].contains(&stuck.url()), "{causes:?}");
    assert!(causes[1].contains("has not answered"), "{causes:?}");
}

/// Who joins while a request is under way waits for the next one, and runs out of time before that
/// does.
#[tokio::test]
async fn a_call_that_runs_out_of_time_first_learns_what_failed_meanwhile() {
    let stuck = Impostor::start(|_| Act::Silence).await;
    let client = direct([stuck.url()]).deadline(Duration::from_millis(400)).build().unwrap();
    let other = client.clone();
    let first = tokio::spawn(async move { other.next().await });
    while stuck.asked() == 0 {
        tokio::task::yield_now().await;
    }
    let later = Duration::from_millis(100);
    tokio::time::timeout(later, std::future::pending::<()>()).await.unwrap_err();
    let error = client.next().await.unwrap_err();
    assert!(matches!(error, Error::Late { .. }), "{error:?}");
    let causes = causes(&error);
    assert!(causes.iter().any(|cause| cause.contains(&stuck.url())), "{error:?}");
    first.await.unwrap().unwrap_err();
}

/// Counts what it is told of.
#[derive(Default)]
struct Tally(Mutex<Stats>);

impl Observer for Tally {
    fn event(&self, event: &Event<'_>) {
        let mut told = self.0.lock().unwrap();
        match event {
            Event::Answered { latency, .. } => {
                told.attempts += 1;
                told.latency_total += *latency;
                told.latency_max = told.latency_max.max(*latency);
            }
            Event::Failed { error, .. } => {
                told.attempts += 1;
                told.failures += 1;
                told.replays += u64::from(matches!(error, Error::Replayed { .. }));
            }
            Event::Retried { is_failover, .. } => {
                told.retries += 1;
                told.failovers += u64::from(*is_failover);
            }
            Event::Refilled { .. } => told.refills += 1,
            Event::Discarded { ids } => told.discarded += ids,
            Event::Waited { .. } => told.waits += 1,
            Event::Joined { .. } => told.joined += 1,
            Event::Left { .. } => told.left += 1,
            other => panic!("{other:?} is counted nowhere"),
        }
    }
}

#[tokio::test]
async fn the_observer_is_told_exactly_what_is_counted() {
    // Answers, repeats and says nothing in turn; the other one is probed again and again, in vain.
    let odd = Impostor::start(|asked| match asked.turn % 4 {
        0 => problem(asked, 503, "OVERLOADED", None),
        1 => Act::BytesThenClose(Vec::new()),
        2 => Act::Bytes(answer("200 OK", &[("frazil-nonce", "another")], b"")),
        _ => Act::Ids,
    })
    .await;
    let well = Impostor::start(|_| Act::Ids).await;
    odd.list_nodes(&[(&well.url(), "")]);
    let tally = Arc::new(Tally::default());
    let age = Duration::from_millis(20);
    let client = direct([odd.url(), nobody().await])
        .prefetch(50)
        .max_age(age)
        .deadline(Duration::from_millis(100))
        .discover_every(Duration::from_millis(1))
        .shared_observer(tally.clone())
        .build()
        .unwrap();
    for turn in 0..60 {
        let _ = client.next().await;
        if turn % 10 == 0 {
            // Old IDs are dropped.
            let _ = tokio::time::timeout(age * 2, std::future::pending::<()>()).await;
        }
    }
    client.close();
    // What is still under way is counted when it ends, by both in one step.
    let limit = Duration::from_secs(20);
    let agree = async {
        loop {
            let counted = client.stats();
            let mut both = *tally.0.lock().unwrap();
            (both.hits, both.requests) = (counted.hits, counted.requests);
            (both.endpoints, both.pooled) = (counted.endpoints, counted.pooled);
            if both == counted {
                return counted;
            }
            tokio::task::yield_now().await;
        }
    };
    let counted = tokio::time::timeout(limit, agree).await;
    let counted = counted.unwrap_or_else(|_| {
        panic!("counted {:?}, told {:?}", client.stats(), tally.0.lock().unwrap())
    });
    // The control: there was something to be told.
    for (what, number) in [
        ("waits", counted.waits),
        ("refills", counted.refills),
        ("discarded", counted.discarded),
        ("retries", counted.retries),
        ("failures", counted.failures),
        ("joined", counted.joined),
    ] {
        assert!(number > 0, "{what}: {counted:?}");
    }
}

#[tokio::test]
async fn a_call_that_waited_in_vain_is_a_wait_too() {
    let stuck = Impostor::start(|_| Act::Silence).await;
    let client = direct([stuck.url()]).deadline(Duration::from_millis(50)).build().unwrap();
    client.next().await.unwrap_err();
    assert_eq!(client.stats().waits, 1);
}
