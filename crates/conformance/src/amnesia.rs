//! The answers of a store that has forgotten.

use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released, Tenure};
use frazil_coord::{Found, Loss, Nonce, Put, Record, Slot, Token};

use super::{Bench, Case, Violation, declare_cases, ensure, want};

declare_cases! {
    gone_record ["D3"]
        "extending a record that is gone is a loss, and does not bring it back",
    gone_everything ["D3"]
        "extending in a wiped namespace is a loss",
    lost_is_not_new ["D3"]
        "a slot whose record is gone is not taken for a new one",
    forgotten_horizon ["D1", "D3"]
        "a holder whose successor starts below its horizon hears that both may use the same times",
    forgotten_token ["D1", "D3"]
        "a holder that finds an older token hears that the store went back",
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

async fn forgotten_horizon(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(5);
    let old = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    bench.lapse(&bench.a, &old).await?;
    rewrite(bench, &old, |record| record.horizon = bench.now - 1000).await?;
    let new = bench.take(&bench.b, &bench.this(&slot).await?).await?;
    ensure!(new.floor < old.horizon, "the floor is {}", new.floor);
    let extended = bench.a.extend(&old, &bench.ask(bench.now + 95_000)).await?;
    let token = want!(extended, Extended::Lost(Loss::Overlapped { token, .. }) => token);
    ensure!(token == new.token, "said {token}, and it is {}", new.token);
    ensure!(bench.is_held(&slot).await?, "the new holder's presence is gone");
    Ok(())
}

async fn forgotten_token(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(5);
    let old = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    bench.lapse(&bench.a, &old).await?;
    let other = Nonce::mint().map_err(Violation::new)?;
    let earlier = |record: &mut Record| {
        record.token = Token(old.token.0 - 1);
        record.nonce = Some(other);
    };
    rewrite(bench, &old, earlier).await?;
    let extended = bench.a.extend(&old, &bench.ask(bench.now + 95_000)).await?;
    want!(extended, Extended::Lost(Loss::Regressed) => ());
    let token = bench.record(&slot).await?.token;
    ensure!(token < old.token, "extending wrote the token {token}");
    Ok(())
}

/// Makes the record of a lapsed tenure another one, as if the store had forgotten the last writes.
async fn rewrite(
    bench: &Bench<'_>,
    tenure: &Tenure,
    change: impl FnOnce(&mut Record),
) -> Result<(), Violation> {
    let entry = want!(bench.entry(&tenure.slot).await?, Some(entry) => entry);
    let mut record = want!(entry.found, Found::Known(record) => record);
    change(&mut record);
    want!(bench.b.put(&tenure.slot, entry.version, &record).await?, Put::Done(_) => ());
    Ok(())
}
