//! Floors and horizons: what keeps the times of different tenures apart.

use frazil_coord::Slot;
use frazil_coord::internal::{Acquired, Extended, Leasing};

use super::subject::SOON_MS;
use super::{Bench, Case, Violation, declare_cases, ensure, want};

declare_cases! {
    floor_is_the_future ["D14", "D19"]
        "whoever takes a lapsed slot starts above all that its holder may still use",
    horizon_rises ["D14"]
        "an acknowledged horizon is in the record, and never falls by extending",
    repeated_extend ["D20"]
        "an extension that arrives again or late changes nothing",
    reattach []
        "a holder whose presence lapsed holds on if nobody took the slot",
    capped []
        "no horizon is further from now than the window",
    ahead_or_blocked []
        "a floor a little ahead is taken, one far ahead is not",
    quarantine []
        "a tenure starts above the quarantine",
    meta_moved []
        "a claim based on another meta is refused",
}

async fn floor_is_the_future(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(1);
    let old = bench.take(&bench.a, &bench.briefly(&slot).await?).await?;
    let asked = bench.now + SOON_MS + 2000;
    let extended = bench.a.extend(&old, &bench.ask(asked)).await?;
    let old = want!(extended, Extended::Held(tenure) => tenure);
    ensure!(old.horizon == asked, "asked for {asked}, got {old:?}");
    bench.lapse(&bench.a, &old).await?;
    let early = bench.this(&slot).await?;
    let census = want!(bench.b.acquire(&early).await?, Acquired::Full(census) => census);
    ensure!(census.next_floor == Some(old.horizon), "said {census:?}");
    let mut claim = bench.this(&slot).await?;
    claim.now = old.horizon;
    let new = bench.take(&bench.b, &claim).await?;
    ensure!(new.floor >= old.horizon, "floor {} under horizon {}", new.floor, old.horizon);
    Ok(())
}

async fn horizon_rises(bench: &Bench<'_>) -> Result<(), Violation> {
    let mut tenure = bench.take(&bench.a, &bench.any()?).await?;
    for (asked, expected) in [(100_000, 100_000), (50_000, 100_000), (120_000, 120_000)] {
        let extended = bench.a.extend(&tenure, &bench.ask(bench.now + asked)).await?;
        tenure = want!(extended, Extended::Held(tenure) => tenure);
        let acknowledged = tenure.horizon - bench.now;
        ensure!(acknowledged == expected, "asked {asked}, acknowledged {acknowledged}");
        let recorded = bench.record(&tenure.slot).await?.horizon - bench.now;
        ensure!(recorded == expected, "acknowledged {expected}, recorded {recorded}");
    }
    Ok(())
}

async fn repeated_extend(bench: &Bench<'_>) -> Result<(), Violation> {
    let first = bench.take(&bench.a, &bench.any()?).await?;
    let late = bench.ask(bench.now + 95_000);
    let extended = bench.a.extend(&first, &bench.ask(bench.now + 150_000)).await?;
    let latest = want!(extended, Extended::Held(tenure) => tenure);
    // The reply to the extension was lost: the holder still knows the older version.
    let repeated = want!(bench.a.extend(&first, &late).await?, Extended::Held(t) => t);
    ensure!(repeated.horizon == latest.horizon, "a late extension lowered the horizon");
    want!(bench.a.extend(&latest, &late).await?, Extended::Held(_) => ());
    Ok(())
}

async fn reattach(bench: &Bench<'_>) -> Result<(), Violation> {
    let tenure = bench.take(&bench.a, &bench.any()?).await?;
    bench.lapse(&bench.a, &tenure).await?;
    let extended = bench.a.extend(&tenure, &bench.ask(bench.now + 150_000)).await?;
    let again = want!(extended, Extended::Held(tenure) => tenure);
    ensure!(again.token == tenure.token, "the token changed");
    ensure!(bench.is_held(&tenure.slot).await?, "extended, and yet nobody is present");
    Ok(())
}

async fn capped(bench: &Bench<'_>) -> Result<(), Violation> {
    let limit = bench.now + super::subject::WINDOW_MS;
    let mut claim = bench.any()?;
    claim.ask = u64::MAX / 4;
    let tenure = bench.take(&bench.a, &claim).await?;
    ensure!(tenure.horizon <= limit, "acquired up to {}", tenure.horizon);
    let extended = bench.a.extend(&tenure, &bench.ask(u64::MAX / 4)).await?;
    let tenure = want!(extended, Extended::Held(tenure) => tenure);
    ensure!(tenure.horizon <= limit, "extended up to {}", tenure.horizon);
    Ok(())
}

async fn ahead_or_blocked(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(4);
    let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    bench.a.release(&tenure, bench.now + frazil_coord::internal::rules::RUN_AHEAD_MS + 1).await?;
    let far = bench.this(&slot).await?;
    want!(bench.b.acquire(&far).await?, Acquired::Full(_) => ());
    let mut near = bench.this(&slot).await?;
    near.now = bench.now + 1;
    let tenure = bench.take(&bench.b, &near).await?;
    ensure!(tenure.floor > near.now, "the floor {} is not ahead", tenure.floor);
    Ok(())
}

async fn quarantine(bench: &Bench<'_>) -> Result<(), Violation> {
    let mut claim = bench.any()?;
    claim.quarantine = bench.now + 1000;
    let tenure = bench.take(&bench.a, &claim).await?;
    ensure!(tenure.floor == claim.quarantine, "the floor is {}", tenure.floor);
    let mut claim = bench.any()?;
    claim.quarantine = bench.now + 100_000;
    let census = want!(bench.a.acquire(&claim).await?, Acquired::Full(census) => census);
    ensure!(census.blocked > 0 && census.poisoned == 0, "said {census:?}");
    Ok(())
}

async fn meta_moved(bench: &Bench<'_>) -> Result<(), Violation> {
    let (any, this) = (bench.any()?, bench.this(&Slot::worker(1)).await?);
    let mut meta = bench.meta.value.clone();
    meta.quarantine = bench.now + 100_000;
    want!(bench.b.put_meta(Some(bench.meta.version), &meta).await?, frazil_coord::Put::Done(_) => ());
    for claim in [any, this] {
        want!(bench.a.acquire(&claim).await?, Acquired::MetaMoved => ());
    }
    ensure!(bench.held(frazil_coord::Group::Workers).await? == 0, "a refused claim took a slot");
    Ok(())
}
