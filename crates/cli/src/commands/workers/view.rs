//! A worker's slot as a user sees it.

use std::collections::BTreeMap;

use comfy_table::{Table, presets};
use frazil::coord::rules::{Outlook, outlook};
use frazil::coord::{Claim, Entry, Found, Meta, Presence, Store, UnixMs, Versioned};
use frazil_id::rfc3339;
use serde::Serialize;

use crate::output::Failure;

/// What a slot is good for now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Held,
    Free,
    Blocked,
    Quarantined,
    Poisoned,
    Lost,
}

impl State {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Free => "free",
            Self::Blocked => "blocked",
            Self::Quarantined => "quarantined",
            Self::Poisoned => "poisoned",
            Self::Lost => "lost",
        }
    }
}

/// One worker.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct View {
    pub(crate) worker: u32,
    pub(crate) state: State,
    /// Who holds it or held it last.
    pub(crate) holder: Option<String>,
    pub(crate) host: Option<String>,
    /// A string: tokens exceed what a JSON number holds everywhere.
    pub(crate) token: Option<String>,
    pub(crate) floor_ms: Option<UnixMs>,
    pub(crate) horizon_ms: Option<UnixMs>,
    pub(crate) horizon: Option<String>,
    /// How long its holder may go on, or others have to wait.
    pub(crate) seconds_left: f64,
    /// How long presence lasts without renewal, where the store counts that.
    pub(crate) expires_in_seconds: Option<f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) info: BTreeMap<String, String>,
}

/// Every worker of a namespace that was ever used, by number.
pub(crate) async fn views(
    store: &dyn Store,
    meta: &Versioned<Meta>,
    now: UnixMs,
) -> Result<Vec<View>, Failure> {
    let entries = store.list(frazil::coord::Group::Workers).await?;
    let judge = Claim::to_judge(meta, now);
    let mut views: Vec<_> =
        entries.into_iter().filter_map(|entry| View::new(entry, &judge)).collect();
    views.sort_by_key(|view| view.worker);
    Ok(views)
}

impl View {
    fn new(entry: Entry, judge: &Claim) -> Option<Self> {
        let worker = entry.slot.number()?;
        let state = match (&entry.presence, &entry.found, outlook(&entry.found, judge)) {
            (_, Found::Lost, _) => State::Lost,
            (Presence::Held { .. }, _, _) => State::Held,
            (_, _, Outlook::Passed | Outlook::Ahead) => State::Free,
            (_, Found::Known(record), Outlook::Blocked { .. })
                if record.horizon < judge.quarantine =>
            {
                State::Quarantined
            }
            (_, _, Outlook::Blocked { .. }) => State::Blocked,
            (_, _, Outlook::Poisoned { .. }) => State::Poisoned,
        };
        let expires_in_seconds = match entry.presence {
            Presence::Held { expires_in: Some(left) } => Some(left.as_secs_f64()),
            _ => None,
        };
        let record = match entry.found {
            Found::Known(record) => Some(record),
            Found::New | Found::Lost => None,
        };
        let horizon_ms = record.as_ref().map(|record| record.horizon);
        let left_ms = horizon_ms.unwrap_or(0).saturating_sub(judge.now);
        Some(Self {
            worker,
            state,
            holder: record.as_ref().map(|record| record.holder.clone()),
            host: record.as_ref().and_then(|record| record.info.get("host").cloned()),
            token: record.as_ref().map(|record| record.token.to_string()),
            floor_ms: record.as_ref().map(|record| record.floor),
            horizon_ms,
            horizon: horizon_ms.map(instant),
            seconds_left: seconds(left_ms),
            expires_in_seconds,
            info: record.map(|record| record.info).unwrap_or_default(),
        })
    }
}

/// A time as RFC 3339; times beyond what that can write stay numbers.
pub(crate) fn instant(unix_ms: UnixMs) -> String {
    match i64::try_from(unix_ms) {
        Ok(ms) => rfc3339::Instant::from_unix_ms(ms).to_string(),
        Err(_) => unix_ms.to_string(),
    }
}

#[expect(clippy::cast_precision_loss, reason = "shown to people, to the millisecond")]
fn seconds(ms: u64) -> f64 {
    ms as f64 / 1000.0
}

/// The workers as a table.
pub(crate) fn table(views: &[View]) -> String {
    let mut table = Table::new();
    table.load_preset(presets::NOTHING);
    table.set_header(["WORKER", "STATE", "HOLDER", "HOST", "TOKEN", "HORIZON", "SECONDS LEFT"]);
    for view in views {
        let text = |value: &Option<String>| printable(value.as_deref().unwrap_or("-"));
        table.add_row([
            view.worker.to_string(),
            view.state.word().to_owned(),
            text(&view.holder),
            text(&view.host),
            text(&view.token),
            text(&view.horizon),
            format!("{:.1}", view.seconds_left),
        ]);
    }
    let lines = table.lines().map(|line| line.trim_end().to_owned());
    lines.collect::<Vec<_>>().join("\n")
}

/// What others wrote into the store must not steer the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}
