//! Ownership: nobody extends, releases or inherits what is not theirs.

use frazil_coord::internal::{Acquired, Choice, Extended, Leasing, Released};
use frazil_coord::{Committed, Group, Loss, Slot, Version};

use super::{Bench, Case, Violation, declare_cases, ensure, want};

declare_cases! {
    extend_of_another ["D1", "D11"]
        "an outdated holder cannot extend, and does not disturb the new one by trying",
    release_of_another ["D2"]
        "an outdated holder cannot release the new one",
    two_readers ["D8"]
        "of two who read the same free slot only one gets it",
    stale_self ["D9"]
        "an older tenure of the same client can neither extend nor release the newer one",
    same_name ["D15"]
        "two holders with the same name are two holders",
    repeated_acquire ["D20"]
        "a claim that arrives again after other tenures does not get the slot back",
    idempotent_acquire ["D20"]
        "repeating a claim while its tenure lasts gives the same tenure",
    held_is_taken ["D8"]
        "a slot with somebody present cannot be taken or put",
    release_frees []
        "a released slot is free at once, above the last time used",
}

async fn extend_of_another(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(3);
    let old = bench.take(&bench.a, &bench.briefly(&slot).await?).await?;
    bench.lapse(&bench.a, &old).await?;
    let mut claim = bench.this(&slot).await?;
    claim.now = old.horizon;
    claim.ask = old.horizon + 1000;
    let new = bench.take(&bench.b, &claim).await?;
    let mut ask = bench.ask(new.horizon + 50_000);
    ask.now = old.horizon;
    let loss = want!(bench.a.extend(&old, &ask).await?, Extended::Lost(loss) => loss);
    ensure!(matches!(loss, Loss::Superseded { token, .. } if token == new.token), "said {loss:?}");
    ensure!(bench.is_held(&slot).await?, "the new holder's presence is gone");
    let record = bench.record(&slot).await?;
    ensure!(record.horizon == new.horizon, "the outdated holder moved the horizon");
    want!(bench.b.extend(&new, &ask).await?, Extended::Held(_) => ());
    Ok(())
}

async fn release_of_another(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(3);
    let old = bench.take(&bench.a, &bench.briefly(&slot).await?).await?;
    bench.lapse(&bench.a, &old).await?;
    let mut claim = bench.this(&slot).await?;
    claim.now = old.horizon;
    let new = bench.take(&bench.b, &claim).await?;
    want!(bench.a.release(&old, old.floor).await?, Released::NotHeld => ());
    ensure!(bench.is_held(&slot).await?, "the new holder was thrown out");
    let record = bench.record(&slot).await?;
    ensure!(record.horizon == new.horizon, "the outdated holder moved the horizon");
    Ok(())
}

async fn two_readers(bench: &Bench<'_>) -> Result<(), Violation> {
    for slot in [Slot::worker(0), Slot::worker(1)] {
        if slot.number() == Some(1) {
            // The second round is on a slot that was used before.
            let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
            bench.a.release(&tenure, bench.now - 1).await?;
        }
        let (mine, yours) = (bench.this(&slot).await?, bench.this(&slot).await?);
        let (first, second) = tokio::join!(bench.a.acquire(&mine), bench.b.acquire(&yours));
        let wins = [first?, second?].iter().filter(|got| matches!(got, Acquired::Held(_))).count();
        ensure!(wins == 1, "{wins} of 2 got {slot}");
    }
    Ok(())
}

async fn stale_self(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(5);
    let old = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    want!(bench.a.release(&old, bench.now - 1).await?, Released::Done => ());
    let new = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    ensure!(new.token > old.token, "token {} came after {}", new.token, old.token);
    let ask = bench.ask(new.horizon + 1000);
    want!(bench.a.extend(&old, &ask).await?, Extended::Lost(_) => ());
    want!(bench.a.release(&old, old.floor).await?, Released::NotHeld => ());
    ensure!(bench.is_held(&slot).await?, "the older tenure ended the newer one");
    want!(bench.a.extend(&new, &ask).await?, Extended::Held(_) => ());
    Ok(())
}

async fn same_name(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::named(Group::Elections, "only-one").map_err(Violation::new)?;
    let first = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    let namesake = bench.this(&slot).await?;
    want!(bench.b.acquire(&namesake).await?, Acquired::Taken => ());
    let mut forged = first.clone();
    forged.nonce = namesake.nonce;
    want!(bench.b.extend(&forged, &bench.ask(0)).await?, Extended::Lost(_) => ());
    want!(bench.b.release(&forged, 0).await?, Released::NotHeld => ());
    ensure!(bench.is_held(&slot).await?, "a namesake ended the tenure");
    Ok(())
}

async fn repeated_acquire(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(9);
    let claim = bench.this(&slot).await?;
    let late = bench.commit(&claim, std::slice::from_ref(&slot)).await?;
    let mine = bench.take(&bench.a, &claim).await?;
    bench.a.release(&mine, bench.now - 2).await?;
    let theirs = bench.take(&bench.b, &bench.this(&slot).await?).await?;
    want!(bench.b.release(&theirs, bench.now - 1).await?, Released::Done => ());
    want!(bench.a.acquire(&claim).await?, Acquired::Taken => ());
    // What is sent does not look again before it is carried out.
    want!(bench.a.commit(&late).await?, Committed::Conflict(_) => ());
    ensure!(!bench.is_held(&slot).await?, "an outdated request took the slot");
    Ok(())
}

async fn idempotent_acquire(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(9);
    let claim = bench.this(&slot).await?;
    let first = bench.take(&bench.a, &claim).await?;
    let again = bench.take(&bench.a, &claim).await?;
    let same =
        (again.token, again.floor, again.horizon) == (first.token, first.floor, first.horizon);
    ensure!(same, "the repetition gave {again:?} after {first:?}");
    let mut meta = bench.meta.value.clone();
    meta.quarantine = bench.now;
    want!(bench.b.put_meta(Some(bench.meta.version), &meta).await?, frazil_coord::Put::Done(_) => ());
    let still = bench.take(&bench.a, &claim).await?;
    ensure!(still.token == first.token, "served, and then not: {still:?}");
    want!(bench.a.extend(&again, &bench.ask(again.horizon)).await?, Extended::Held(_) => ());
    // The same for one that did not say which. A store that tries one slot at a time says which one
    // it was about when the outcome is not known.
    if bench.a.changes_max() == 1 {
        return Ok(());
    }
    let mut any = bench.any()?;
    any.meta = want!(bench.a.meta().await?, Some(meta) => meta.version);
    let first = bench.take(&bench.a, &any).await?;
    let again = bench.take(&bench.a, &any).await?;
    let same = (&again.slot, again.token) == (&first.slot, first.token);
    ensure!(same, "the repetition gave {again:?} after {first:?}");
    Ok(())
}

async fn held_is_taken(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(2);
    let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    want!(bench.b.acquire(&bench.this(&slot).await?).await?, Acquired::Taken => ());
    let claim = bench.claim(Choice::This(slot.clone(), Version(0)))?;
    want!(bench.b.acquire(&claim).await?, Acquired::Taken => ());
    let record = bench.record(&slot).await?;
    let put = bench.b.put(&slot, tenure.version, &record).await?;
    ensure!(put == frazil_coord::Put::Conflict, "a record was put under its holder");
    Ok(())
}

async fn release_frees(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(2);
    let old = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    let last = bench.now - 10;
    want!(bench.a.release(&old, last).await?, Released::Done => ());
    ensure!(!bench.is_held(&slot).await?, "a released slot is still held");
    want!(bench.a.release(&old, last).await?, Released::Done => ());
    let new = bench.take(&bench.b, &bench.this(&slot).await?).await?;
    ensure!(new.floor == last, "the floor is {}, the last time used was {last}", new.floor);
    ensure!(new.token > old.token, "token {} came after {}", new.token, old.token);
    Ok(())
}
