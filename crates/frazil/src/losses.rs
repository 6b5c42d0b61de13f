//! The number of lost leases, by reason.

use std::sync::atomic::{AtomicU64, Ordering};

use frazil_coord::Loss;

const REASONS: usize = Loss::WORDS.len();

/// Counts what the leases of a node say themselves when they are lost, so that none is missed however
/// soon another worker is found, and whichever lanes come and go.
#[derive(Debug, Default)]
pub(crate) struct Losses([AtomicU64; REASONS]);

impl Losses {
    pub(crate) fn add(&self, loss: &Loss) {
        let place = Loss::WORDS.iter().position(|word| *word == loss.word());
        if let Some(place) = place {
            // Relaxed, here and below: statistics.
            self.0[place].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Every word of [`Loss`] with its count.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Loss::WORDS.iter().copied().zip(self.0.iter().map(count)).collect()
    }
}

#[cfg(test)]
mod tests {
    use frazil_coord::Token;

    use super::*;

    #[test]
    fn every_reason_has_a_count_of_its_own() {
        let (token, holder) = (Token(1), String::from("other"));
        let all = [
            Loss::Superseded { token, holder: holder.clone() },
            Loss::Overlapped { token, holder },
            Loss::Released,
            Loss::Vanished,
            Loss::Lapsed,
            Loss::Regressed,
        ];
        let losses = Losses::default();
        for (times, loss) in (1..).zip(&all) {
            (0..times).for_each(|_| losses.add(loss));
        }
        let expected: Vec<_> = all.iter().map(Loss::word).zip(1..).collect();
        assert_eq!(losses.counts(), expected);
    }
}
