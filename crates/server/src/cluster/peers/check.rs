//! The check of IDs that another node sent, before they are handed out. What names the leader of a scope is a record
//! of the store; whoever can write one must not be able to make this node hand out IDs that no
//! leader can have issued.

use std::fmt;

use frazil::Batch;
use frazil::coord::UnixMs;
use frazil::coord::internal::rules::{CLOCK_BOUND_MS, RUN_AHEAD_MS};
use frazil_id::{Id, Layout};

use super::LeaderAnswer;

/// What an answer must be like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) layout: &'a Layout,
    /// Who leads the scope, and with which token.
    pub(crate) node: &'a str,
    pub(crate) leader_token: u64,
    pub(crate) count: u32,
    /// The last ID of the scope that this node handed out before it asked.
    pub(crate) above: Option<Id>,
    pub(crate) times: Times,
}

/// The times that IDs can have which are issued now by whoever has a clock that is trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Times {
    from: UnixMs,
    until: UnixMs,
}

/// Why an answer is handed to nobody.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InvalidAnswer {
    Node(String),
    LeaderToken(Option<u64>),
    Count(usize),
    /// Not in order, of several workers, or of another layout.
    Order,
    NotAbove(Id),
    Time(Id),
}

impl Times {
    /// What can be issued between two readings of this node's clock: when it asked, and when it
    /// was answered. Clocks differ as far as they are let, and IDs run ahead of theirs.
    pub(crate) fn between(asked: UnixMs, answered: UnixMs, max_ahead_ms: u64) -> Self {
        let ahead = CLOCK_BOUND_MS.saturating_add(RUN_AHEAD_MS).saturating_add(max_ahead_ms);
        Self { from: asked.saturating_sub(CLOCK_BOUND_MS), until: answered.saturating_add(ahead) }
    }

    fn have(self, layout: &Layout, id: Id) -> bool {
        let Ok(parts) = id.parts(layout) else { return false };
        let began = layout.unix_ms(parts.tick);
        began <= self.until && began.saturating_add(layout.tick_ms().into()) > self.from
    }
}

/// The IDs of an answer, and the last of them, if they are what was expected.
pub(crate) fn check(
    answer: &LeaderAnswer,
    expected: &Expected<'_>,
) -> Result<(Batch, Id), InvalidAnswer> {
    if answer.node != expected.node {
        return Err(InvalidAnswer::Node(answer.node.clone()));
    }
    if answer.leader_token != Some(expected.leader_token) {
        return Err(InvalidAnswer::LeaderToken(answer.leader_token));
    }
    if answer.ids.len() != expected.count as usize {
        return Err(InvalidAnswer::Count(answer.ids.len()));
    }
    let batch = Batch::from_ids(expected.layout, answer.ids.iter().copied());
    let ends = batch.as_ref().and_then(Batch::ends);
    let (Some(batch), Some((first, last))) = (batch, ends) else {
        return Err(InvalidAnswer::Order);
    };
    if expected.above.is_some_and(|above| first <= above) {
        return Err(InvalidAnswer::NotAbove(first));
    }
    for id in [first, last] {
        if !expected.times.have(expected.layout, id) {
            return Err(InvalidAnswer::Time(id));
        }
    }
    Ok((batch, last))
}

impl fmt::Display for InvalidAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node(node) => write!(f, "{node} answered, who does not lead the scope"),
            Self::LeaderToken(Some(token)) => {
                write!(f, "it leads with the token {token}, and the store has another one")
            }
            Self::LeaderToken(None) => f.write_str("it does not say with which token it leads"),
            Self::Count(count) => write!(f, "it sent {count} IDs, and others were asked for"),
            Self::Order => f.write_str("it sent IDs that are not in order, or of another layout"),
            Self::NotAbove(id) => {
                write!(f, "it sent {id}, which is not above the last ID of the scope here")
            }
            Self::Time(id) => {
                write!(f, "it sent {id}, whose time is too far from the clock of this node")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMs = 1_800_000_000_000;
    const LAYOUT: Layout = Layout::FRAZIL;

    /// An ID of worker 1, so many milliseconds from now.
    fn id(offset_ms: i64, sequence: u64) -> Id {
        let tick = NOW.saturating_add_signed(offset_ms) - LAYOUT.epoch_ms();
        Id::from_u64((tick << 22) | (1 << 12) | sequence)
    }

    fn checked(ids: &[Id], change: impl FnOnce(&mut LeaderAnswer)) -> Result<Id, InvalidAnswer> {
        let mut answer = LeaderAnswer {
            ids: ids.to_vec(),
            node: "one".to_owned(),
            region: None,
            token: 3,
            leader_token: Some(7),
        };
        change(&mut answer);
        let expected = Expected {
            layout: &LAYOUT,
            node: "one",
            leader_token: 7,
            count: 2,
            above: Some(id(0, 5)),
            times: Times::between(NOW, NOW + 50, 10),
        };
        check(&answer, &expected).map(|(_, last)| last)
    }

    #[test]
    fn an_answer_of_the_leader_is_believed() {
        assert_eq!(checked(&[id(0, 6), id(0, 7)], |_| {}), Ok(id(0, 7)));
        assert_eq!(checked(&[id(1, 0), id(2060, 0)], |_| {}), Ok(id(2060, 0)));
    }

    #[test]
    fn what_no_leader_can_have_issued_is_not() {
        let good = [id(0, 6), id(0, 7)];
        let node = checked(&good, |answer| answer.node = "two".to_owned());
        assert_eq!(node, Err(InvalidAnswer::Node("two".to_owned())));
        for token in [Some(6), Some(8), None] {
            let refused = checked(&good, |answer| answer.leader_token = token);
            assert_eq!(refused, Err(InvalidAnswer::LeaderToken(token)));
        }
        for ids in [&good[..1], &[id(0, 6), id(0, 7), id(0, 8)], &[]] {
            assert_eq!(checked(ids, |_| {}), Err(InvalidAnswer::Count(ids.len())));
        }
        let other_worker = Id::from_u64(id(0, 7).to_u64() + (1 << 12));
        for ids in [[id(0, 7), id(0, 6)], [id(0, 6), id(0, 6)], [id(0, 6), other_worker]] {
            assert_eq!(checked(&ids, |_| {}), Err(InvalidAnswer::Order));
        }
        for first in [id(0, 5), id(0, 0), id(-1, 9)] {
            assert_eq!(checked(&[first, id(1, 0)], |_| {}), Err(InvalidAnswer::NotAbove(first)));
        }
    }

    #[test]
    fn times_further_from_the_clock_than_clocks_differ_are_refused() {
        let times = Times::between(NOW, NOW + 50, 10);
        let ahead = i64::try_from(50 + CLOCK_BOUND_MS + RUN_AHEAD_MS + 10).unwrap();
        let behind = i64::try_from(CLOCK_BOUND_MS).unwrap();
        for (offset, is_good) in
            [(0, true), (ahead, true), (ahead + 1, false), (-behind, true), (-behind - 1, false)]
        {
            assert_eq!(times.have(&LAYOUT, id(offset, 0)), is_good, "{offset}");
        }
        assert!(!times.have(&LAYOUT, Id::from_u64(1)));
        assert!(!times.have(&LAYOUT, Id::from_u64(u64::MAX)));
    }
}
