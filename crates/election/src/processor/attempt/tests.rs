use std::future::pending;
use std::sync::mpsc;

use tokio::time::Instant;

use super::*;

const DRAIN: Duration = Duration::from_secs(7);

/// Waits until a time has passed, on a clock that jumps to what is waited for.
async fn passed(time: Duration) {
    let _ = timeout(time, pending::<()>()).await;
}

/// Watches work that gets the receiver of its cancellation, and is asked to stop at once.
async fn stopped<F>(work: impl FnOnce(watch::Receiver<bool>) -> F) -> Ended<&'static str>
where
    F: Future<Output = Result<(), BoxError>> + Send + 'static,
{
    let (cancel, cancelled) = watch::channel(false);
    let attempt = Attempt::start(work(cancelled), cancel);
    attempt.watch(async { "asked" }, |_| (), DRAIN, pending()).await
}

/// Watches work that nobody asks to stop.
async fn left_alone(
    work: impl Future<Output = Result<(), BoxError>> + Send + 'static,
) -> Ended<()> {
    let attempt = Attempt::start(work, watch::Sender::new(false));
    attempt.watch(pending(), |()| (), DRAIN, pending()).await
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_is_judged_by_how() {
    assert!(matches!(left_alone(async { Ok(()) }).await, Ended::Done));
    let failed = left_alone(async { Err("no disk".into()) }).await;
    assert!(matches!(failed, Ended::Failed(why) if why == "no disk"));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_a_failure_that_says_what_it_said() {
    let plain = left_alone(async { panic!("at the disco") }).await;
    assert!(matches!(plain, Ended::Failed(why) if why == "it panicked: at the disco"));
    let formatted = left_alone(async { panic!("number {}", 7) }).await;
    assert!(matches!(formatted, Ended::Failed(why) if why == "it panicked: number 7"));
}

#[tokio::test(start_paused = true)]
async fn work_that_stops_when_asked_is_waited_for_even_if_it_calls_that_an_error() {
    let start = Instant::now();
    let ended = stopped(async |mut cancelled: watch::Receiver<bool>| {
        cancelled.wait_for(|cancelled| *cancelled).await?;
        passed(DRAIN / 2).await;
        Err("cancelled".into())
    });
    let ended = ended.await;
    assert!(matches!(ended, Ended::Stopped("asked", Stopped::Gracefully)), "{ended:?}");
    assert_eq!(start.elapsed(), DRAIN / 2);
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_stop_is_aborted_at_the_end_of_the_drain() {
    let start = Instant::now();
    let ended = stopped(|_| pending()).await;
    assert!(matches!(ended, Ended::Stopped("asked", Stopped::Aborted)), "{ended:?}");
    assert_eq!(start.elapsed(), DRAIN);
}

#[tokio::test(start_paused = true)]
async fn work_is_aborted_before_the_end_of_the_drain_if_its_time_is_up() {
    let start = Instant::now();
    let attempt = Attempt::start(pending(), watch::Sender::new(false));
    let ended = attempt.watch(async {}, |()| (), DRAIN, passed(DRAIN / 7)).await;
    assert!(matches!(ended, Ended::Stopped((), Stopped::Aborted)), "{ended:?}");
    assert_eq!(start.elapsed(), DRAIN / 7);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_that_blocks_its_thread_is_known_to_run_still() {
    let (release, blocked) = mpsc::channel::<()>();
    let attempt = Attempt::start(
        async move {
            let _ = blocked.recv();
            Ok(())
        },
        watch::Sender::new(false),
    );
    let ended = attempt.watch(async {}, |()| (), Duration::ZERO, pending()).await;
    let Ended::Stopped((), Stopped::NotAtAll(stuck)) = ended else { panic!("{ended:?}") };
    release.send(()).unwrap();
    timeout(Duration::from_secs(20), stuck.end()).await.expect("it ends at last");
}
