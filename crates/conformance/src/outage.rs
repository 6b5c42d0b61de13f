//! The answers of a store that cannot be reached.

use frazil_coord::internal::{Acquired, Choice, Leasing, Released};
use frazil_coord::{Error, Group, Slot};

use super::{Bench, Case, Violation, declare_cases, ensure, want};

declare_cases! {
    outage_is_an_error ["D16"]
        "a store that cannot be reached is neither full nor empty, and no tenure ends with it",
}

async fn outage_is_an_error(bench: &Bench<'_>) -> Result<(), Violation> {
    let tenure = bench.take(&bench.a, &bench.any()?).await?;
    let Some(cut) = bench.unreachable().await? else { return Ok(()) };
    is_outage("meta", cut.meta().await)?;
    is_outage("list", cut.list(Group::Workers).await)?;
    is_outage("acquire any", cut.acquire(&bench.any()?).await)?;
    let this = bench.claim(Choice::This(Slot::worker(9), frazil_coord::Version(0)))?;
    match cut.acquire(&this).await {
        Ok(Acquired::Unsure(slot, _)) if slot == Slot::worker(9) => {}
        other => is_outage("acquire this", other)?,
    }
    is_outage("extend", cut.extend(&tenure, &bench.ask(bench.now + 95_000)).await)?;
    // Where presence is the client's own, another one knows without asking that it has none.
    match cut.release(&tenure, bench.now).await {
        Ok(Released::NotHeld) => Ok(()),
        other => is_outage("release", other),
    }
}

/// Fails the case unless the error says that trying again may help.
fn is_outage<T: std::fmt::Debug>(act: &str, got: Result<T, Error>) -> Result<(), Violation> {
    let error = want!(got, Err(error) => error);
    ensure!(error.kind().is_retryable(), "{act} said {error:#}");
    Ok(())
}
