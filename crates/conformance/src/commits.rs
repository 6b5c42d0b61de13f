//! The commit itself, without the protocol above it: what is compared, and what is written.

use frazil_coord::internal::repair;
use frazil_coord::internal::{Acquired, Leasing, Released};
use frazil_coord::{
    Committed, Entry, Forgotten, Found, Group, Look, Nonce, Presence, Put, Record, Slot, Token,
    Version, Watched,
};

use super::{Bench, Case, Violation, declare_cases, ensure, want};

declare_cases! {
    nonce_is_compared ["D9"]
        "a commit over the version that is there and another nonce is refused",
    first_possible ["D13"]
        "the first possible of several changes is made, and no other",
    served_once ["D20"]
        "a commit of several changes that is repeated shows its slot and takes no second one",
    conflict_is_fresh []
        "a conflict shows every slot of the commit as it is now, and meta",
    just_seen []
        "a claim goes by a look that was had before only to be tried: nothing else is told by it",
    forgetting ["D2"]
        "an election that nobody is present in can be forgotten; a held one and a worker cannot",
    forgotten_tokens []
        "the token of a slot that was forgotten does not return, whatever clocks show",
    watching_one []
        "a watch of one slot announces its acquisition and its release",
}

async fn nonce_is_compared(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(30);
    let old = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    bench.lapse(&bench.a, &old).await?;
    let mut claim = bench.this(&slot).await?;
    claim.now = old.horizon;
    let sound = bench.commit(&claim, std::slice::from_ref(&slot)).await?;
    ensure!(sound.changes[0].nonce == Some(old.nonce), "read {:?}", sound.changes[0]);
    for wrong in [None, Some(Nonce::mint().map_err(Violation::new)?)] {
        let mut commit = sound.clone();
        commit.changes[0].nonce = wrong;
        let look = want!(bench.b.commit(&commit).await?, Committed::Conflict(look) => look);
        ensure!(nonce_in(&look, &slot) == Some(old.nonce), "showed {look:?}");
    }
    ensure!(!bench.is_held(&slot).await?, "a refused commit took the slot");
    want!(bench.b.commit(&sound).await?, Committed::Done { index: 0, .. } => ());
    Ok(())
}

async fn first_possible(bench: &Bench<'_>) -> Result<(), Violation> {
    let slots: Vec<Slot> = (40..=42).map(Slot::worker).collect();
    // Stores that try one change alone have only the first to make.
    let taken = usize::from(bench.a.changes_max() > 1);
    let claim = bench.any()?;
    let mut commit = bench.commit(&claim, &slots).await?;
    for change in commit.changes.iter_mut().take(taken) {
        change.version = Version(1_000_000);
    }
    let done = bench.a.commit(&commit).await?;
    let index = want!(done, Committed::Done { index, .. } => index);
    ensure!(index == taken, "made change {index}, and {taken} was the first possible");
    for (index, slot) in slots.iter().enumerate() {
        let entry = bench.look(slot).await?;
        let is_taken = entry.nonce() == Some(claim.nonce) && entry.presence != Presence::Free;
        let is_untouched = entry == Entry::unused(slot.clone());
        ensure!(if index == taken { is_taken } else { is_untouched }, "{index}: {entry:?}");
    }
    Ok(())
}

async fn served_once(bench: &Bench<'_>) -> Result<(), Violation> {
    let slots = [Slot::worker(50), Slot::worker(51)];
    let claim = bench.any()?;
    let commit = bench.commit(&claim, &slots).await?;
    want!(bench.a.commit(&commit).await?, Committed::Done { index: 0, .. } => ());
    // A nonce is minted in a process: another one has none of its commits to repeat.
    let repeaters = if bench.a.is_bound_to_process() { 1 } else { 2 };
    for client in [&bench.a, &bench.b].into_iter().take(repeaters) {
        let look = want!(client.commit(&commit).await?, Committed::Conflict(look) => look);
        let shown = look.carrying(claim.nonce).map(|(entry, _)| &entry.slot);
        ensure!(shown == Some(&slots[0]), "served with {}, showed {shown:?}", slots[0]);
        let taken = bench.held(Group::Workers).await?;
        ensure!(taken == 1, "one nonce has {taken} slots");
    }
    // The claim as a whole finds its slot again too, unless it offers one at a time.
    if bench.a.changes_max() == 1 {
        return Ok(());
    }
    let tenure = bench.take(&bench.a, &claim).await?;
    ensure!(tenure.slot == slots[0], "served with {}, and then {}", slots[0], tenure.slot);
    Ok(())
}

async fn conflict_is_fresh(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(33);
    let late = bench.commit(&bench.this(&slot).await?, std::slice::from_ref(&slot)).await?;
    let tenure = bench.take(&bench.b, &bench.this(&slot).await?).await?;
    let look = want!(bench.a.commit(&late).await?, Committed::Conflict(look) => look);
    let listed = bench.look(&slot).await?;
    let shown = want!(look.entry(&slot), Some(entry) => entry);
    ensure!(shown.nonce() == Some(tenure.nonce), "showed {shown:?}");
    let same = (shown.version, &shown.found) == (listed.version, &listed.found);
    ensure!(same && shown.presence != Presence::Free, "showed {shown:?}, read {listed:?}");
    ensure!(look.meta.as_ref() == Some(&bench.meta), "showed {:?}", look.meta);
    // Another meta than was read is a conflict too, and is shown.
    let free = Slot::worker(34);
    let commit = bench.commit(&bench.this(&free).await?, std::slice::from_ref(&free)).await?;
    let mut meta = bench.meta.value.clone();
    meta.quarantine = 7;
    let put = bench.b.put_meta(Some(bench.meta.version), &meta).await?;
    let version = want!(put, Put::Done(version) => version);
    let look = want!(bench.a.commit(&commit).await?, Committed::Conflict(look) => look);
    let shown = look.meta.as_ref().map(|meta| (meta.version, meta.value.quarantine));
    ensure!(shown == Some((version, 7)), "showed {shown:?}");
    Ok(())
}

async fn just_seen(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::named(Group::Elections, "seen").map_err(Violation::new)?;
    let unused = bench.a.read(std::slice::from_ref(&slot)).await?;
    let first = bench.this(&slot).await?;
    let taken = bench.a.acquire_seen(&first, Some(unused.clone())).await?;
    let tenure = want!(taken, Acquired::Held(tenure) => tenure);
    // Sent again, by what was seen before it was carried out.
    let taken = bench.a.acquire_seen(&first, Some(unused.clone())).await?;
    let again = want!(taken, Acquired::Held(tenure) => tenure);
    ensure!(again.token == tenure.token, "a claim was served with {tenure:?} and {again:?}");
    let late = bench.claim(first.choice)?;
    let taken = bench.b.acquire_seen(&late, Some(unused.clone())).await?;
    want!(taken, Acquired::Taken => ());
    want!(bench.a.release(&tenure, tenure.floor).await?, Released::Done => ());
    // The claim names what is there now, and the look does not show it.
    let next = bench.this(&slot).await?;
    let taken = bench.b.acquire_seen(&next, Some(unused)).await?;
    let tenure = want!(taken, Acquired::Held(tenure) => tenure);
    want!(bench.b.release(&tenure, tenure.floor).await?, Released::Done => ());
    // Meta was written since: that of the look is not what the claim is based on.
    let look = bench.a.read(std::slice::from_ref(&slot)).await?;
    let put = bench.b.put_meta(Some(bench.meta.version), &bench.meta.value).await?;
    let mut last = bench.this(&slot).await?;
    last.meta = want!(put, Put::Done(version) => version);
    want!(bench.a.acquire_seen(&last, Some(look)).await?, Acquired::Held(_) => ());
    Ok(())
}

async fn forgetting(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::named(Group::Elections, "over").map_err(Violation::new)?;
    let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    want!(bench.b.forget(&slot, tenure.version).await?, Put::Conflict => ());
    ensure!(bench.is_held(&slot).await?, "a held election was forgotten");
    want!(bench.a.release(&tenure, tenure.floor).await?, Released::Done => ());
    want!(bench.b.forget(&slot, tenure.version).await?, Put::Conflict => ());
    let version = bench.look(&slot).await?.version;
    want!(bench.b.forget(&slot, version).await?, Put::Done(_) => ());
    ensure!(bench.entry(&slot).await?.is_none(), "forgotten, and listed");
    let entry = bench.look(&slot).await?;
    ensure!(entry.found == Found::New && entry.presence == Presence::Free, "read {entry:?}");
    let mut claim = bench.this(&slot).await?;
    claim.now = bench.now + 1;
    let again = bench.take(&bench.a, &claim).await?;
    ensure!(again.token > tenure.token, "token {} came after {}", again.token, tenure.token);
    worker_stays(bench).await
}

async fn forgotten_tokens(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::named(Group::Elections, "ahead").map_err(Violation::new)?;
    // A leader whose clock was an hour ahead was elected a minute ago.
    let token = Token(bench.now + 3_600_000);
    let led = Record { token, renewed: bench.now - 60_000, ..repair::replacement(&bench.any()?) };
    let led = Record { horizon: 0, ..led };
    want!(bench.a.put(&slot, Version(0), &led).await?, Put::Done(_) => ());
    want!(bench.b.forget_finished(&slot, bench.now).await?, Forgotten::Done => ());
    want!(bench.b.forget_finished(&slot, bench.now).await?, Forgotten::Unknown => ());
    let mut claim = bench.this(&slot).await?;
    want!(bench.a.acquire(&claim).await?, Acquired::MetaMoved => ());
    let meta = bench.a.meta().await?.map(|meta| (meta.version, meta.value.token_floor));
    let (version, floor) = want!(meta, Some(meta) => meta);
    ensure!(floor == token, "the floor of tokens is {floor}");
    claim.meta = version;
    let next = bench.take(&bench.a, &claim).await?;
    ensure!(next.token > token, "token {} came after {token}", next.token);
    want!(bench.a.release(&next, next.floor).await?, Released::Done => ());
    want!(bench.b.forget_finished(&slot, bench.now).await?, Forgotten::Recent { .. } => ());
    Ok(())
}

async fn worker_stays(bench: &Bench<'_>) -> Result<(), Violation> {
    let worker = Slot::worker(35);
    let tenure = bench.take(&bench.a, &bench.this(&worker).await?).await?;
    want!(bench.a.release(&tenure, bench.now - 1).await?, Released::Done => ());
    let version = bench.look(&worker).await?.version;
    want!(bench.b.forget(&worker, version).await?, Put::Conflict => ());
    let horizon = bench.record(&worker).await?.horizon;
    ensure!(horizon == bench.now - 1, "the horizon of a worker became {horizon}");
    Ok(())
}

async fn watching_one(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::named(Group::Elections, "one").map_err(Violation::new)?;
    let watched = Watched::Slot(slot.clone());
    let mut changes = bench.b.watch(&watched).await?;
    let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    want!(changes.next().await, Some(()) => ());
    let mut changes = bench.b.watch(&watched).await?;
    want!(bench.a.release(&tenure, 0).await?, Released::Done => ());
    want!(changes.next().await, Some(()) => ());
    ensure!(!bench.is_held(&slot).await?, "announced, and still held");
    Ok(())
}

fn nonce_in(look: &Look, slot: &Slot) -> Option<Nonce> {
    look.entry(slot).and_then(Entry::nonce)
}
