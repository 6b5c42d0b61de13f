//! What a store must say when it has forgotten.

use super::{Bench, Case, Violation, declare_cases, ensure, want};
use crate::slot::Slot;
use crate::store::{Acquired, Choice, Extended, Found, Loss, Released};

declare_cases! {
    gone_record ["D3"]
        "extending a record that is gone is a loss, and does not bring it back",
    gone_everything ["D3"]
        "extending in a wiped namespace is a loss",
    lost_is_not_new ["D3"]
        "a slot whose record is gone is not taken for a new one",
}

async fn gone_record(bench: &Bench<'_>) -> Result<(), Violation> {
    let tenure = bench.take(&bench.a, &bench.any()?).await?;
    bench.forget(&tenure.slot).await?;
    let extended = bench.a.extend(&tenure, &bench.ask(bench.now + 1000)).await?;
    want!(extended, Extended::Lost(Loss::Vanished) => ());
    let found = bench.entry(&tenure.slot).await?.map(|entry| entry.found);
    ensure!(!matches!(found, Some(Found::Known(_))), "extending brought back {found:?}");
    want!(bench.a.release(&tenure, 0).await?, Released::NotHeld => ());
    Ok(())
}

async fn gone_everything(bench: &Bench<'_>) -> Result<(), Violation> {
    let tenure = bench.take(&bench.a, &bench.any()?).await?;
    bench.wipe().await?;
    ensure!(bench.b.meta().await?.is_none(), "meta survived");
    let extended = bench.a.extend(&tenure, &bench.ask(bench.now + 1000)).await?;
    want!(extended, Extended::Lost(Loss::Vanished) => ());
    want!(bench.b.acquire(&bench.any()?).await?, Acquired::MetaMoved => ());
    Ok(())
}

async fn lost_is_not_new(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(6);
    let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    bench.lapse(&bench.a, &tenure).await?;
    bench.forget(&slot).await?;
    let entry = bench.entry(&slot).await?;
    let entry = want!(entry, Some(entry) => entry);
    ensure!(entry.found == Found::Lost, "listed as {:?}", entry.found);
    let claim = bench.claim(Choice::This(slot.clone(), entry.version))?;
    want!(bench.b.acquire(&claim).await?, Acquired::Full(_) => ());
    let only = bench.claim(Choice::Any { first: 6, last: 6, favourite: None })?;
    let census = want!(bench.b.acquire(&only).await?, Acquired::Full(census) => census);
    ensure!(census.blocked == 1, "said {census:?}");
    Ok(())
}
