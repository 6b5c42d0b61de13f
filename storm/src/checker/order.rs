//! Order in real time: what was asked for after an answer was received is larger.

use std::collections::BTreeMap;

use super::{AnswerSummary, describe};
use crate::verdict::Verdict;

/// Checks it within each group.
pub(super) fn check<G: Ord>(
    summaries: &[AnswerSummary],
    group: impl Fn(&AnswerSummary) -> G,
    verdict: &mut Verdict,
) {
    let mut groups = BTreeMap::<G, Vec<AnswerSummary>>::new();
    for summary in summaries {
        groups.entry(group(summary)).or_default().push(*summary);
    }
    for of_group in groups.into_values() {
        if let Some((earlier, later)) = out_of_order(of_group) {
            let text = format!("{} before {}", describe(&earlier), describe(&later));
            verdict.find("order", text);
        }
    }
}

/// Two in the wrong order: what was answered before the other was asked for is larger.
fn out_of_order(mut by_answered: Vec<AnswerSummary>) -> Option<(AnswerSummary, AnswerSummary)> {
    let mut by_asked = by_answered.clone();
    by_asked.sort_by_key(|summary| summary.asked);
    by_answered.sort_by_key(|summary| summary.answered);
    let (mut earlier, mut largest) = (by_answered.into_iter().peekable(), None::<AnswerSummary>);
    for later in by_asked {
        while let Some(summary) = earlier.next_if(|earlier| earlier.answered < later.asked) {
            if largest.is_none_or(|largest| summary.last > largest.last) {
                largest = Some(summary);
            }
        }
        if let Some(largest) = largest.filter(|largest| largest.last >= later.first) {
            return Some((largest, later));
        }
    }
    None
}
