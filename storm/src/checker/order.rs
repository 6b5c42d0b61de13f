//! Order in real time: what was asked for after an answer was received is larger.

use std::collections::BTreeMap;

use super::{Sighting, describe};
use crate::verdict::Verdict;

/// Checks it within each group.
pub(super) fn check<G: Ord>(
    sightings: &[Sighting],
    group: impl Fn(&Sighting) -> G,
    verdict: &mut Verdict,
) {
    let mut groups = BTreeMap::<G, Vec<Sighting>>::new();
    for sighting in sightings {
        groups.entry(group(sighting)).or_default().push(*sighting);
    }
    for of_group in groups.into_values() {
        if let Some((earlier, later)) = out_of_order(of_group) {
            let text = format!("{} before {}", describe(&earlier), describe(&later));
            verdict.find("order", text);
        }
    }
}

/// Two in the wrong order: what was answered before the other was asked for is larger.
fn out_of_order(mut by_answered: Vec<Sighting>) -> Option<(Sighting, Sighting)> {
    let mut by_asked = by_answered.clone();
    by_asked.sort_by_key(|sighting| sighting.asked);
    by_answered.sort_by_key(|sighting| sighting.answered);
    let (mut earlier, mut largest) = (by_answered.into_iter().peekable(), None::<Sighting>);
    for later in by_asked {
        while let Some(sighting) = earlier.next_if(|earlier| earlier.answered < later.asked) {
            if largest.is_none_or(|largest| sighting.last > largest.last) {
                largest = Some(sighting);
            }
        }
        if let Some(largest) = largest.filter(|largest| largest.last >= later.first) {
            return Some((largest, later));
        }
    }
    None
}
