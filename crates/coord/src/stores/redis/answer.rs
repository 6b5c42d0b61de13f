//! The answers of scripts.

use std::time::Duration;

use super::history::Stored;
use super::keys::Keys;
use super::text;
use crate::error::{ErrorKind, Reason};
use crate::record::{Meta, UnixMs, Versioned, parse_meta};
use crate::slot::{Group, Slot};
use crate::store::{Entry, Found, Presence};

/// The answer of a script.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: String,
    /// What a script says beside, in front of the rest.
    pub(super) more: Vec<String>,
    /// The server's clock.
    pub(super) clock: UnixMs,
    /// The history that the server is in.
    pub(super) id: String,
    pub(super) replication: String,
    persistence: String,
    pub(super) meta: Option<Versioned<Meta>>,
    /// Whether slots of the kind are marked as used.
    pub(super) is_marked: bool,
    /// How many records of the kind there are.
    pub(super) records: u64,
    pub(super) stored: Stored,
    pub(super) entries: Vec<Entry>,
}

impl Answer {
    /// Takes words apart. `more`: how many stand between the status and the rest.
    ///
    /// # Errors
    /// If they are not what a script says, or meta cannot be read.
    pub(super) fn of(
        words: &[String],
        more: usize,
        keys: &Keys,
        group: Group,
    ) -> Result<Self, (ErrorKind, Reason)> {
        let strange = || (ErrorKind::Corrupt, format!("the script answered {words:?}").into());
        let (status, rest) = words.split_first().ok_or_else(strange)?;
        let more = if matches!(status.as_str(), "look" | "done") { more } else { 0 };
        let (more, rest) = rest.split_at_checked(more).ok_or_else(strange)?;
        let (head, slots) = rest.split_at_checked(14).ok_or_else(strange)?;
        let head: Vec<&str> = head.iter().map(String::as_str).collect();
        let [micros, id, replication, persistence, meta, marked, records, history @ ..] = &head[..]
        else {
            return Err(strange());
        };
        let clock = micros.parse::<u64>().map_err(|_| strange())? / 1000;
        let history: [&str; 7] = history.try_into().map_err(|_| strange())?;
        let meta = if meta.is_empty() {
            None
        } else {
            Some(parse_meta(meta.as_bytes(), format_args!("DEL {}", keys.meta()))?)
        };
        Ok(Self {
            status: status.clone(),
            more: more.to_vec(),
            clock,
            id: (*id).to_owned(),
            replication: (*replication).to_owned(),
            persistence: (*persistence).to_owned(),
            meta,
            is_marked: *marked == "1",
            records: records.parse().unwrap_or(0),
            stored: Stored::of(history),
            entries: slots.chunks_exact(3).filter_map(|slot| entry(group, slot, clock)).collect(),
        })
    }

    /// A field of what the server says about its persistence.
    pub(super) fn persistence(&self, name: &str) -> Option<&str> {
        field(&self.persistence, name)
    }

    /// Whether this server alone has the data, as far as it can tell: one that was promoted
    /// remembers whom it followed.
    pub(super) fn is_alone(&self) -> bool {
        let was_promoted =
            self.replication("master_replid2").is_none_or(|id| id.chars().any(|c| c != '0'));
        self.replication("connected_slaves") == Some("0") && !was_promoted
    }

    /// A field of what the server says about its replication.
    pub(super) fn replication(&self, name: &str) -> Option<&str> {
        field(&self.replication, name)
    }
}

/// A field of what `INFO` says.
pub(super) fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = info.lines().filter_map(|line| line.trim_end().split_once(':'));
    pairs.find_map(|(known, value)| (known == name).then_some(value))
}

fn entry(group: Group, words: &[String], now: UnixMs) -> Option<Entry> {
    let [name, text, was_used] = words else { return None };
    let slot = Slot::named(group, name).ok()?;
    if text.is_empty() {
        let found = if was_used == "1" { Found::Lost } else { Found::New };
        return Some(Entry { found, ..Entry::unused(slot) });
    }
    let (version, record) = text::record(text);
    let left = record.as_ref().and_then(|record| record.expires?.checked_sub(now));
    let presence = match left {
        None | Some(0) => Presence::Free,
        Some(left) => Presence::Held { expires_in: Some(Duration::from_millis(left)) },
    };
    Some(Entry { slot, version, found: record.map_or(Found::Lost, Found::Known), presence })
}
