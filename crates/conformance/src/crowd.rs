//! The choice from a pool, alone and in a crowd.

use std::collections::BTreeSet;

use frazil_coord::Slot;
use frazil_coord::internal::{Acquired, Choice, Leasing, Released};

use super::subject::{LAST_WORKER, SOON_MS};
use super::{Bench, Case, Violation, declare_cases, ensure, want};

declare_cases! {
    distinct ["D8"]
        "a pool gives every claim a slot of its own and then says that it is full",
    at_once ["D8"]
        "many claims at once get distinct slots",
    prefers_passed []
        "a slot whose floor has passed is preferred to one that is ahead",
    favourite []
        "the favourite is taken if its floor has passed and nobody is there",
    within_range []
        "only slots of the range are taken",
    tokens_rise []
        "tokens of a slot rise even if the clock goes back",
}

async fn distinct(bench: &Bench<'_>) -> Result<(), Violation> {
    let range =
        |bench: &Bench<'_>| bench.claim(Choice::Any { first: 10, last: 13, favourite: None });
    let mut taken = BTreeSet::new();
    for _ in 10..=13 {
        let tenure = bench.take(&bench.a, &range(bench)?).await?;
        ensure!(taken.insert(tenure.slot.number()), "{} twice", tenure.slot);
    }
    let census = want!(bench.b.acquire(&range(bench)?).await?, Acquired::Full(c) => c);
    ensure!((census.held, census.blocked) == (4, 0), "said {census:?}");
    Ok(())
}

async fn at_once(bench: &Bench<'_>) -> Result<(), Violation> {
    let mut waiting = tokio::task::JoinSet::new();
    for index in 0..=LAST_WORKER {
        let store = if index % 2 == 0 { bench.a.clone() } else { bench.b.clone() };
        let claim = bench.any()?;
        waiting.spawn(async move { store.acquire(&claim).await });
    }
    let mut taken = BTreeSet::new();
    while let Some(finished) = waiting.join_next().await {
        let acquired = finished.map_err(Violation::new)??;
        let tenure = want!(acquired, Acquired::Held(tenure) => tenure);
        ensure!(taken.insert(tenure.slot.number()), "{} twice", tenure.slot);
    }
    ensure!(
        bench.held(frazil_coord::Group::Workers).await? == taken.len(),
        "some are not listed as held"
    );
    Ok(())
}

async fn prefers_passed(bench: &Bench<'_>) -> Result<(), Violation> {
    for number in 20..=23 {
        let slot = Slot::worker(number);
        let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
        let last = if number == 22 { bench.now - 1 } else { bench.now + 1500 };
        want!(bench.a.release(&tenure, last).await?, Released::Done => ());
    }
    let any = bench.claim(Choice::Any { first: 20, last: 23, favourite: Some(21) })?;
    let tenure = bench.take(&bench.b, &any).await?;
    ensure!(tenure.slot == Slot::worker(22), "took {}", tenure.slot);
    let any = bench.claim(Choice::Any { first: 20, last: 23, favourite: None })?;
    let ahead = bench.take(&bench.b, &any).await?;
    ensure!(ahead.floor == bench.now + 1500, "the floor is {}", ahead.floor);
    Ok(())
}

async fn favourite(bench: &Bench<'_>) -> Result<(), Violation> {
    let loved = bench.claim(Choice::Any { first: 0, last: LAST_WORKER, favourite: Some(37) })?;
    let tenure = bench.take(&bench.a, &loved).await?;
    ensure!(tenure.slot == Slot::worker(37), "took {}", tenure.slot);
    want!(bench.a.release(&tenure, bench.now - 1).await?, Released::Done => ());
    let again = bench.claim(Choice::Any { first: 0, last: LAST_WORKER, favourite: Some(37) })?;
    let tenure = bench.take(&bench.b, &again).await?;
    ensure!(tenure.slot == Slot::worker(37), "took {} after a release", tenure.slot);
    let third = bench.claim(Choice::Any { first: 0, last: LAST_WORKER, favourite: Some(37) })?;
    let other = bench.take(&bench.a, &third).await?;
    ensure!(other.slot != Slot::worker(37), "took what is held");
    Ok(())
}

async fn within_range(bench: &Bench<'_>) -> Result<(), Violation> {
    for _ in 0..3 {
        let claim = bench.claim(Choice::Any { first: 60, last: 62, favourite: Some(5) })?;
        let number = bench.take(&bench.a, &claim).await?.slot.number();
        ensure!(number.is_some_and(|number| (60..=62).contains(&number)), "took {number:?}");
    }
    Ok(())
}

async fn tokens_rise(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(0);
    let first = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    want!(bench.a.release(&first, 1).await?, Released::Done => ());
    let mut claim = bench.this(&slot).await?;
    claim.now = bench.now - SOON_MS;
    claim.ask = bench.now;
    let second = bench.take(&bench.b, &claim).await?;
    ensure!(second.token > first.token, "token {} came after {}", second.token, first.token);
    Ok(())
}
