//! Work that runs while its process leads. Nobody else leads before it has ended.

use std::future::pending;
use std::pin::{Pin, pin};

use frazil_coord::Error;

use super::candidate::Candidate;
use super::leadership::{Leadership, Proof};

/// Campaigns, and runs the work whenever elected, in this task. It resigns only when the work has
/// returned, so the next leader starts after all that this one did.
///
/// When the leadership is lost the work must end by itself, as [`Proof::cancelled`] tells it; then
/// this campaigns again. When the work returns while it leads, this resigns and returns what the
/// work returned. Dropping this drops the work where it is and resigns in the background; use
/// [`run_until`] for work that has something to finish.
///
/// A task of a minute, on one process at a time:
///
/// ```
/// # use frazil_coord::MemoryStore;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let elections = frazil_election::Elections::new(std::sync::Arc::new(MemoryStore::new()));
/// # let minute = std::time::Duration::from_millis(1);
/// use frazil_election::{Proof, Settings, run};
///
/// async fn tidy_up(proof: Proof, every: std::time::Duration) -> u32 {
///     let mut ticks = tokio::time::interval(every);
///     for round in 0.. {
///         tokio::select! {
///             () = proof.cancelled() => return round,
///             _ = ticks.tick() => println!("round {round} under token {}", proof.token()),
///         }
/// #       if round == 2 { return round; }
///     }
///     unreachable!("the rounds do not end")
/// }
///
/// let candidate = elections.candidate("tidy-up", Settings::default())?;
/// let rounds = run(&candidate, |proof| tidy_up(proof, minute)).await?;
/// # assert_eq!(rounds, 2);
/// # assert!(elections.leader("tidy-up").await?.is_none());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As for [`Candidate::campaign`].
pub async fn run<T, F>(candidate: &Candidate, work: impl FnMut(Proof) -> F) -> Result<T, Error>
where
    F: Future<Output = T>,
{
    match run_until(candidate, pending(), work).await? {
        Some(done) => Ok(done),
        None => unreachable!("it is never asked to stop"),
    }
}

/// As [`run`], until `stop` is ready: then it leads no more, the work is told by
/// [`Proof::cancelled`] and waited for while the leadership is kept in the store, and then this
/// resigns. It gives what the work returned; `None` if it did not lead when it was stopped.
///
/// # Errors
/// As for [`Candidate::campaign`].
pub async fn run_until<T, F>(
    candidate: &Candidate,
    stop: impl Future<Output = ()>,
    mut work: impl FnMut(Proof) -> F,
) -> Result<Option<T>, Error>
where
    F: Future<Output = T>,
{
    let mut stop = pin!(stop);
    loop {
        let leadership = tokio::select! {
            biased;
            () = &mut stop => return Ok(None),
            elected = candidate.campaign() => elected?,
        };
        let working = work(leadership.proof());
        let (done, is_last) = lead(&leadership, stop.as_mut(), working).await;
        if let Err(error) = leadership.resign().await {
            let election = candidate.name();
            tracing::warn!(error = %format_args!("{error:#}"), election, "the next leader may have to wait for the TTL");
        }
        if is_last {
            return Ok(Some(done));
        }
    }
}

/// Waits for the work; whether it ended for another reason than that the leadership was lost.
async fn lead<T>(
    leadership: &Leadership,
    stop: Pin<&mut impl Future<Output = ()>>,
    work: impl Future<Output = T>,
) -> (T, bool) {
    let mut work = pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return (done, leadership.is_leader()),
        () = stop => leadership.step_down(),
    }
    (work.await, true)
}
