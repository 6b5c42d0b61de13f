//! The description that a leader gives of itself, in its slot's record.

use std::collections::BTreeMap;

use serde::Serialize;

use frazil_coord::{Entry, Found, Nonce, Presence, Record, Token, UnixMs};

use super::settings::Settings;

/// Who leads an election.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LeaderInfo {
    /// Of the election.
    pub name: String,
    /// Who leads.
    pub instance: String,
    /// On which machine.
    pub host: String,
    /// In which process.
    pub pid: u32,
    /// With which version of this library.
    pub version: String,
    /// Since when, in Unix milliseconds by its own clock.
    pub elected_ms: UnixMs,
    /// When it last renewed, in Unix milliseconds by its own clock.
    pub renewed_ms: UnixMs,
    /// With which fencing token.
    pub token: Token,
    /// What else it wants known.
    pub metadata: BTreeMap<String, String>,
    /// Which candidate it is, among those of the same name too; `None` of one that does not say.
    #[serde(skip)]
    pub(super) candidate: Option<Nonce>,
}

/// An election and how it stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ElectionInfo {
    /// The election.
    pub name: String,
    /// Its leader, if there is one.
    pub leader: Option<LeaderInfo>,
    /// Whoever was elected last, whether it leads still or not.
    pub last: Option<LeaderInfo>,
    /// The token of the last leader that there was.
    pub last_token: Token,
    /// In how many milliseconds the leadership ends unless it is renewed; `None` where there is no
    /// leader, or where it ends with the process.
    pub expires_in_ms: Option<u64>,
}

/// The name of a candidate's own mark.
const CANDIDATE: &str = "candidate";
/// Before the names of a leader's own metadata.
const METADATA: &str = "meta.";

impl LeaderInfo {
    /// What the record of a slot that somebody is present in says. If that is of a holder who left,
    /// the one who is present has not written yet: nobody.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Self> {
        let (Found::Known(record), Presence::Held { .. }) = (&entry.found, entry.presence) else {
            return None;
        };
        record.nonce.as_ref()?;
        Some(Self::written_by(record, entry.slot.name()))
    }

    /// Whoever was elected last, whether it leads still or not; `None` if nobody ever was. This
    /// outlives the leader, and a claim replaces it in the step that takes the slot: whoever decides
    /// by it in a [`Pace`](super::Pace) when to go for a slot is elected only if it is still so.
    #[must_use]
    pub fn last(entry: &Entry) -> Option<Self> {
        match &entry.found {
            Found::Known(record) => Some(Self::written_by(record, entry.slot.name())),
            Found::New | Found::Lost => None,
        }
    }

    fn written_by(record: &Record, name: &str) -> Self {
        let text = |name: &str| record.info.get(name).cloned().unwrap_or_default();
        let metadata = record.info.iter().filter_map(|(name, value)| {
            Some((name.strip_prefix(METADATA)?.to_owned(), value.clone()))
        });
        let elected_ms = text("elected").parse().unwrap_or(record.token.0);
        Self {
            name: name.to_owned(),
            instance: record.holder.clone(),
            host: text("host"),
            pid: text("pid").parse().unwrap_or(0),
            version: text("version"),
            elected_ms,
            // The first is by the leader's clock and this one by the store's, which may be behind it.
            renewed_ms: record.renewed.max(elected_ms),
            token: record.token,
            metadata: metadata.collect(),
            candidate: text(CANDIDATE).parse().ok(),
        }
    }

    /// What a candidate writes into the record.
    pub(super) fn written(
        settings: &Settings,
        candidate: Nonce,
        now: UnixMs,
    ) -> BTreeMap<String, String> {
        let own = [
            ("host", settings.host.clone()),
            ("pid", std::process::id().to_string()),
            ("version", env!("CARGO_PKG_VERSION").to_owned()),
            ("elected", now.to_string()),
            (CANDIDATE, candidate.to_string()),
        ];
        let own = own.into_iter().map(|(name, value)| (name.to_owned(), value));
        let more = settings.metadata.iter();
        own.chain(more.map(|(name, value)| (format!("{METADATA}{name}"), value.clone()))).collect()
    }
}

impl ElectionInfo {
    /// How the election behind a slot stands.
    #[must_use]
    pub fn of(entry: &Entry) -> Self {
        let last_token = match &entry.found {
            Found::Known(record) => record.token,
            Found::New | Found::Lost => Token::default(),
        };
        let expires_in_ms = match entry.presence {
            Presence::Held { expires_in: Some(left) } => {
                Some(u64::try_from(left.as_millis()).unwrap_or(u64::MAX))
            }
            Presence::Held { expires_in: None } | Presence::Free => None,
        };
        let (leader, last) = (LeaderInfo::of(entry), LeaderInfo::last(entry));
        Self { name: entry.slot.name().to_owned(), leader, last, last_token, expires_in_ms }
    }
}

#[cfg(test)]
mod tests {
    use frazil_coord::{Group, Slot, Version};

    use super::*;

    fn entry(nonce: Option<Nonce>, presence: Presence) -> Entry {
        let record = Record {
            token: Token(7),
            nonce,
            holder: "a".into(),
            floor: 0,
            horizon: 0,
            renewed: 0,
            expires: None,
            released: false,
            info: [].into(),
        };
        let slot = Slot::named(Group::Elections, "x").unwrap();
        Entry { slot, version: Version(1), found: Found::Known(record), presence }
    }

    #[test]
    fn whoever_left_is_not_taken_for_the_one_who_came_and_has_not_written_yet() {
        let held = Presence::Held { expires_in: None };
        let nonce = Some(Nonce::mint().unwrap());
        assert_eq!(LeaderInfo::of(&entry(nonce, held)).unwrap().instance, "a");
        assert!(LeaderInfo::of(&entry(nonce, Presence::Free)).is_none());
        assert!(LeaderInfo::of(&entry(None, held)).is_none());
    }

    #[test]
    fn whoever_was_elected_last_is_known_after_it_left() {
        for nonce in [Some(Nonce::mint().unwrap()), None] {
            let last = LeaderInfo::last(&entry(nonce, Presence::Free)).unwrap();
            assert_eq!((last.instance.as_str(), last.elected_ms), ("a", 7));
        }
        let forgotten = Entry { found: Found::Lost, ..entry(None, Presence::Free) };
        assert!(LeaderInfo::last(&forgotten).is_none());
    }
}
