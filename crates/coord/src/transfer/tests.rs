use super::*;
use crate::nonce::Nonce;
use crate::record::FORMAT;
use crate::stores::memory::MemoryStore;

const NOW: UnixMs = 1_800_000_000_000;

fn meta() -> Meta {
    Meta {
        format: FORMAT,
        incarnation: Nonce::from_bits(1),
        layout: "layout".into(),
        first_worker: 0,
        last_worker: 9,
        window_ms: 60_000,
        quarantine: 0,
        token_floor: Token::default(),
        created: 1000,
    }
}

fn record(horizon: UnixMs, token: u64, nonce: Option<Nonce>) -> Record {
    let claim =
        crate::lease::Claim::to_judge(&Versioned { version: Version(1), value: meta() }, NOW);
    Record { horizon, token: Token(token), nonce, ..crate::repair::replacement(&claim) }
}

fn lines(meta: &Meta, records: &[Record]) -> Vec<String> {
    let line = |line: &ExportLine| serde_json::to_string(line).unwrap() + "\n";
    let slots = records.iter().enumerate().map(|(number, record)| ExportLine::Record {
        group: Group::Workers,
        name: Slot::worker(u32::try_from(number).unwrap()).name().to_owned(),
        record: Some(record.clone()),
    });
    let all = [ExportLine::Meta(meta.clone())].into_iter().chain(slots);
    all.chain([ExportLine::End { records: records.len() }]).map(|one| line(&one)).collect()
}

fn export(meta: &Meta, records: &[Record]) -> Export {
    Export::read(&mut lines(meta, records).concat().as_bytes()).unwrap()
}

async fn horizon(store: &MemoryStore, worker: u32) -> UnixMs {
    let entries = store.list(Group::Workers).await.unwrap();
    let entry = entries.into_iter().find(|entry| entry.slot == Slot::worker(worker)).unwrap();
    let Found::Known(record) = entry.found else { panic!("{entry:?}") };
    record.horizon
}

#[tokio::test]
async fn horizons_and_tokens_are_only_raised() {
    let store = MemoryStore::new();
    let first = export(&meta(), &[record(NOW + 5, 7, None), record(NOW + 50, 9, None)]);
    let imported = import(&store, first, NOW).await.unwrap();
    assert_eq!((imported.records, imported.quarantine, imported.was_live), (2, 0, false));
    let second = export(&meta(), &[record(NOW + 6, 7, None), record(NOW + 49, 9, None)]);
    import(&store, second, NOW).await.unwrap();
    assert_eq!((horizon(&store, 0).await, horizon(&store, 1).await), (NOW + 6, NOW + 50));
    let other = Meta { last_worker: 5, ..meta() };
    let refused = import(&store, export(&other, &[]), NOW).await.unwrap_err();
    assert!(matches!(refused, ImportError::OtherPool(_)), "{refused:?}");
}

#[tokio::test]
async fn whoever_held_a_worker_when_it_was_exported_may_still_use_it() {
    let store = MemoryStore::new();
    let held = export(&meta(), &[record(NOW, 7, Some(Nonce::from_bits(3)))]);
    let imported = import(&store, held, NOW).await.unwrap();
    assert_eq!(imported.quarantine, NOW + quarantine::longest_use_ms(60_000));
    let known = store.meta().await.unwrap().unwrap().value;
    assert_eq!(known.quarantine, imported.quarantine);
}

#[test]
fn what_is_no_whole_export_is_refused() {
    let whole = lines(&meta(), &[record(NOW, 7, None)]);
    let read = |lines: &[String]| Export::read(&mut lines.concat().as_bytes());
    assert!(read(&whole).is_ok());
    for (lines, why) in [
        (&whole[..0], "no meta"),
        (&whole[1..], "no meta"),
        (&whole[..2], "cut off after 1 record:"),
        (&[whole[0].clone(), whole[2].clone()][..], "cut off after 0 records:"),
        (&[whole.clone(), whole.clone()].concat()[..], "line 4 of the export: something after"),
        (&["{}\n".to_owned()][..], "line 1 of the export"),
    ] {
        let error = format!("{:#}", read(lines).unwrap_err());
        assert!(error.contains(why), "{why}: {error}");
    }
    let newer = lines(&Meta { format: FORMAT + 1, ..meta() }, &[]);
    assert!(matches!(read(&newer), Err(ExportError::NewerFormat)));
}
