//! Meta, listing, putting and watching.

use frazil_coord::internal::{Acquired, Leasing, Released};
use frazil_coord::{Committed, Found, Group, Presence, Put, Record, Slot, Token, Version, Watched};

use super::{Bench, Case, Violation, declare_cases, ensure, want};

declare_cases! {
    meta_is_swapped []
        "meta is replaced only by who read the latest version",
    listing []
        "a listing shows holder, token, floor, horizon and presence",
    kinds_are_apart []
        "slots of different kinds with the same name are different slots",
    put_swaps []
        "a record is put only over the version that was read",
    every_list_of_keys_is_announced []
        "a watch announces every change of the list of API keys",
    watching []
        "a watch announces acquisitions and releases",
    refusal_leaves_nothing ["D13"]
        "a failed claim leaves nothing behind",
}

async fn meta_is_swapped(bench: &Bench<'_>) -> Result<(), Violation> {
    let seen = bench.b.meta().await?;
    ensure!(seen.as_ref() == Some(&bench.meta), "wrote {:?}, read {seen:?}", bench.meta);
    let mut meta = bench.meta.value.clone();
    want!(bench.b.put_meta(None, &meta).await?, Put::Conflict => ());
    meta.quarantine = 7;
    let put = bench.b.put_meta(Some(bench.meta.version), &meta).await?;
    let version = want!(put, Put::Done(version) => version);
    want!(bench.a.put_meta(Some(bench.meta.version), &meta).await?, Put::Conflict => ());
    let seen = bench.a.meta().await?.map(|meta| (meta.version, meta.value.quarantine));
    ensure!(seen == Some((version, 7)), "read {seen:?}");
    Ok(())
}

async fn listing(bench: &Bench<'_>) -> Result<(), Violation> {
    ensure!(bench.b.list(Group::Workers).await?.is_empty(), "slots in a new namespace");
    let mut claim = bench.any()?;
    claim.holder = "host \"7\"\\\n, with (odd) marks".into();
    let tenure = bench.take(&bench.a, &claim).await?;
    let entry = bench.entry(&tenure.slot).await?;
    let entry = want!(entry, Some(entry) => entry);
    ensure!(entry.presence != Presence::Free, "nobody seems present");
    let record = want!(entry.found, Found::Known(record) => record);
    ensure!(record.holder == claim.holder, "the holder reads {:?}", record.holder);
    ensure!(record.info == claim.info, "the info reads {:?}", record.info);
    let same = (record.token, record.nonce, record.floor, record.horizon)
        == (tenure.token, Some(tenure.nonce), tenure.floor, tenure.horizon);
    ensure!(same, "acquired {tenure:?}, listed {record:?}");
    Ok(())
}

async fn kinds_are_apart(bench: &Bench<'_>) -> Result<(), Violation> {
    for group in [Group::Elections, Group::Scopes] {
        let slot = Slot::named(group, "7").map_err(Violation::new)?;
        bench.take(&bench.a, &bench.this(&slot).await?).await?;
    }
    let worker = Slot::worker(7);
    ensure!(bench.entry(&worker).await?.is_none(), "an election is listed as a worker");
    bench.take(&bench.a, &bench.this(&worker).await?).await?;
    want!(bench.a.put(&Slot::api_keys(), Version(0), &put_record(bench)).await?, Put::Done(_) => ());
    for group in Group::ALL.iter().copied() {
        let listed = bench.b.list(group).await?.len();
        ensure!(listed == 1, "{listed} slots of {group:?}");
    }
    Ok(())
}

async fn put_swaps(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(8);
    let mut record = put_record(bench);
    let version = want!(bench.a.put(&slot, Version(0), &record).await?, Put::Done(v) => v);
    want!(bench.a.put(&slot, Version(0), &record).await?, Put::Conflict => ());
    let listed = bench.record(&slot).await?;
    ensure!(listed == record, "put {record:?}, listed {listed:?}");
    record.horizon = bench.now + 500;
    // Only its holder can say that a slot was released.
    record.released = true;
    want!(bench.b.put(&slot, version, &record).await?, Put::Done(_) => ());
    ensure!(!bench.record(&slot).await?.released, "what was put counts as released");
    want!(bench.a.put(&slot, version, &record).await?, Put::Conflict => ());
    let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    ensure!(tenure.floor == record.horizon, "the floor is {}", tenure.floor);
    Ok(())
}

/// A record as operators write them.
fn put_record(bench: &Bench<'_>) -> Record {
    Record {
        token: Token(41),
        nonce: None,
        holder: "imported".into(),
        floor: 5,
        horizon: bench.now - 5,
        renewed: 5,
        expires: None,
        released: false,
        info: std::collections::BTreeMap::new(),
    }
}

/// Nobody holds the list of API keys, so every change of it is news.
async fn every_list_of_keys_is_announced(bench: &Bench<'_>) -> Result<(), Violation> {
    let (slot, mut record) = (Slot::api_keys(), put_record(bench));
    let mut version = Version(0);
    for text in ["none", "one", "two"] {
        record.info.insert("keys".into(), text.into());
        let mut changes = bench.b.watch(&Watched::Slot(slot.clone())).await?;
        version = want!(bench.a.put(&slot, version, &record).await?, Put::Done(v) => v);
        want!(changes.next().await, Some(()) => ());
        ensure!(bench.record(&slot).await? == record, "announced, and another list is there");
    }
    Ok(())
}

async fn watching(bench: &Bench<'_>) -> Result<(), Violation> {
    let mut changes = bench.b.watch(&Watched::Group(Group::Elections)).await?;
    let slot = Slot::named(Group::Elections, "watched").map_err(Violation::new)?;
    let tenure = bench.take(&bench.a, &bench.this(&slot).await?).await?;
    want!(changes.next().await, Some(()) => ());
    let mut changes = bench.b.watch(&Watched::Group(Group::Elections)).await?;
    bench.a.release(&tenure, 0).await?;
    want!(changes.next().await, Some(()) => ());
    ensure!(!bench.is_held(&slot).await?, "announced, and still held");
    Ok(())
}

async fn refusal_leaves_nothing(bench: &Bench<'_>) -> Result<(), Violation> {
    let slot = Slot::worker(3);
    let mut claim = bench.this(&slot).await?;
    claim.quarantine = bench.now + 100_000;
    want!(bench.a.acquire(&claim).await?, Acquired::Full(_) => ());
    ensure!(!bench.is_held(&slot).await?, "a refused claim left presence behind");
    let tenure = bench.take(&bench.b, &bench.this(&slot).await?).await?;
    ensure!(tenure.floor == 0, "a refused claim left a floor of {}", tenure.floor);
    // A commit that is refused by the store itself, over a slot that was used and one that was not.
    want!(bench.b.release(&tenure, bench.now - 1).await?, Released::Done => ());
    for slot in [slot, Slot::worker(4)] {
        let before = bench.look(&slot).await?;
        let claim = bench.this(&slot).await?;
        let mut commit = bench.commit(&claim, std::slice::from_ref(&slot)).await?;
        commit.meta = Some(Version(bench.meta.version.0 + 1));
        want!(bench.a.commit(&commit).await?, Committed::Conflict(_) => ());
        let after = bench.look(&slot).await?;
        ensure!(after == before, "a refused commit made {after:?} of {before:?}");
    }
    Ok(())
}
