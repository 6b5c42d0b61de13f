//! IDs of applications: in the one set with all others, and as true.

use std::sync::atomic::Ordering;

use frazil_id::Id;

use super::Checker;
use crate::history::UnorderedIds;

impl Checker {
    /// Checks IDs that went through a client. Each may be of any worker, and nobody told its token, so
    /// that they have no part in the order of runs and in tenures.
    pub(crate) fn take_handful(&mut self, unordered_ids: &UnorderedIds) {
        let before = self.verdict.finding_count;
        for &id in &unordered_ids.ids {
            match self.set.insert(Id::from_u64(id)) {
                Ok(true) => self.through_clients += 1,
                Ok(false) => self.find_again(id),
                Err(error) => self.verdict.find("layout", format!("{id}: {error}")),
            }
            self.check_time(id, unordered_ids);
        }
        let found = self.verdict.finding_count - before;
        // Relaxed: a number to look at.
        self.caught.fetch_add(found, Ordering::Relaxed);
    }

    fn find_again(&mut self, id: u64) {
        let earlier = self.summaries.iter().find(|earlier| {
            let of = |id: u64| Id::from_u64(id).parts(&self.layout).map(|parts| parts.worker);
            of(id) == Ok(earlier.worker) && (earlier.first..=earlier.last).contains(&id)
        });
        let earlier = earlier.map_or("through a client".to_owned(), super::describe);
        self.verdict.find("unique", format!("{id} twice: {earlier}; through a client"));
    }

    fn check_time(&mut self, id: u64, unordered_ids: &UnorderedIds) {
        let Ok(parts) = Id::from_u64(id).parts(&self.layout) else { return };
        let at = self.layout.unix_ms(parts.tick).cast_signed();
        let (behind, ahead) =
            (unordered_ids.asked_unix_ms - at, at - unordered_ids.answered_unix_ms);
        if behind > unordered_ids.tolerance.behind_ms {
            let text = format!("{id}, through a client, is {behind} ms in the past");
            self.verdict.find("truth", text);
        }
        if ahead > unordered_ids.tolerance.ahead_ms {
            let text = format!("{id}, through a client, is {ahead} ms in the future");
            self.verdict.find("truth", text);
        }
    }
}
