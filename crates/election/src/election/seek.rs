//! When to go for a slot, purely: from what was seen of it, and what time it is.

use std::time::Duration;

use frazil_coord::{Found, Presence, Slot, Token, Version};

use super::board::View;

/// What a candidate remembers of the slot that it wants.
#[derive(Debug)]
pub(super) struct Seeking {
    lock_delay: Duration,
    ttl: Duration,
    /// Whether the slot was ever there: one that is gone afterwards was forgotten, and whoever held
    /// it may not know yet.
    was_there: bool,
    /// How the slot was last seen free, if it was not held since.
    vacancy: Option<Vacancy>,
    /// Views that were asked for before this say nothing: the slot was claimed in vain since.
    stale_before: Duration,
    /// Nothing is claimed before this boot time.
    not_before: Duration,
}

/// A slot that was seen free.
#[derive(Clone, Copy, Debug)]
struct Vacancy {
    version: Version,
    /// Of the last one who held it.
    token: Option<Token>,
    /// Since when, in boot time.
    since: Duration,
    /// What is waited for from then on.
    delay: Duration,
}

/// What to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Nothing: claim this version.
    No(Version),
    /// So long, unless something changes.
    For(Duration),
    /// Until something changes.
    ForAChange,
    /// Until the store was looked at again.
    ForALook,
}

impl Seeking {
    pub(super) const fn new(lock_delay: Duration, ttl: Duration) -> Self {
        let (stale_before, not_before) = (Duration::ZERO, Duration::ZERO);
        Self { lock_delay, ttl, was_there: false, vacancy: None, stale_before, not_before }
    }

    /// A claim failed: what was seen is out of date, and the next one is made after a pause.
    pub(super) fn in_vain(&mut self, now: Duration, pause: Duration) {
        self.stale_before = now;
        self.not_before = now + pause;
    }

    pub(super) fn judge(
        &mut self,
        view: &View,
        slot: &Slot,
        now: Duration,
        pace: &(dyn Fn(&View) -> Option<Duration> + Send + Sync),
    ) -> Wait {
        if view.asked <= self.stale_before {
            return match self.not_before.checked_sub(now) {
                Some(pause) if !pause.is_zero() => Wait::For(pause),
                _ => Wait::ForALook,
            };
        }
        let (version, token, delay) = match view.entries.get(slot.name()) {
            None if self.was_there => (Version(0), None, self.after_amnesia()),
            None => (Version(0), None, Duration::ZERO),
            Some(entry) if entry.presence != Presence::Free => {
                (self.was_there, self.vacancy) = (true, None);
                return Wait::ForAChange;
            }
            Some(entry) => match &entry.found {
                Found::New => (entry.version, None, Duration::ZERO),
                Found::Known(record) => {
                    // Whoever releases erases its mark.
                    let is_released = record.nonce.is_none();
                    let delay = if is_released { Duration::ZERO } else { self.lock_delay };
                    (entry.version, Some(record.token), delay)
                }
                Found::Lost => (entry.version, None, self.after_amnesia()),
            },
        };
        let Vacancy { since, delay, .. } = self.seen_free(version, token, (view.seen, delay));
        let Some(pace) = pace(view) else { return Wait::ForAChange };
        let ready = (since + delay.max(pace)).max(self.not_before);
        match ready.checked_sub(now) {
            Some(pause) if !pause.is_zero() => Wait::For(pause),
            _ => Wait::No(version),
        }
    }

    /// Since when the slot is free, and what is waited for. A leader that releases after it was seen
    /// to be gone shortens nothing: it may have been frozen, and its work with it.
    fn seen_free(
        &mut self,
        version: Version,
        token: Option<Token>,
        (seen, delay): (Duration, Duration),
    ) -> Vacancy {
        let vacancy = match self.vacancy {
            Some(known) if known.version == version => known,
            Some(known) if token.is_some() && known.token == token && known.delay > delay => {
                Vacancy { version, ..known }
            }
            _ => Vacancy { version, token, since: seen, delay },
        };
        self.vacancy = Some(vacancy);
        vacancy
    }

    /// How long a leader that the store has forgotten may go on believing that it leads. Work that
    /// checks tokens need not wait for that.
    fn after_amnesia(&self) -> Duration {
        if self.lock_delay.is_zero() { Duration::ZERO } else { self.ttl + self.lock_delay }
    }
}

#[cfg(test)]
mod tests {
    use frazil_coord::{Entry, Group, Nonce, Record};

    use super::*;

    const DELAY: Duration = Duration::from_secs(1);
    const TTL: Duration = Duration::from_secs(10);

    fn slot() -> Slot {
        Slot::named(Group::Elections, "x").unwrap()
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// A view of a slot of a version: held, left with its mark, or given up.
    fn view(time: Duration, version: u64, presence: Presence, nonce: Option<Nonce>) -> View {
        let record = Record {
            token: Token(version),
            nonce,
            holder: "somebody".into(),
            floor: 0,
            horizon: 0,
            renewed: 0,
            expires: None,
            released: false,
            info: [].into(),
        };
        let found = Found::Known(record);
        let entry = Entry { slot: slot(), version: Version(version), found, presence };
        View { entries: [("x".to_owned(), entry)].into(), asked: time, seen: time }
    }

    fn judge(seeking: &mut Seeking, view: &View, now: Duration) -> Wait {
        seeking.judge(view, &slot(), now, &|_| Some(Duration::ZERO))
    }

    #[test]
    fn nothing_is_claimed_before_the_store_was_looked_at() {
        let mut seeking = Seeking::new(DELAY, TTL);
        assert_eq!(judge(&mut seeking, &View::default(), at(5)), Wait::ForALook);
        let empty = View { asked: at(4), seen: at(4), ..View::default() };
        assert_eq!(judge(&mut seeking, &empty, at(5)), Wait::No(Version(0)));
    }

    #[test]
    fn only_what_was_left_without_a_word_is_waited_for() {
        let mut seeking = Seeking::new(DELAY, TTL);
        let released = view(at(4), 7, Presence::Free, None);
        assert_eq!(judge(&mut seeking, &released, at(4)), Wait::No(Version(7)));
        let left = view(at(10), 8, Presence::Free, Some(Nonce::from_bits(1)));
        assert_eq!(judge(&mut seeking, &left, at(10)), Wait::For(DELAY));
        // Counted from when it was first seen, not from the last look.
        let again = view(at(11), 8, Presence::Free, Some(Nonce::from_bits(1)));
        assert_eq!(judge(&mut seeking, &again, at(11)), Wait::No(Version(8)));
    }

    #[test]
    fn a_leader_that_wakes_and_releases_does_not_shorten_the_wait() {
        let mut seeking = Seeking::new(at(20), TTL);
        let left = view(at(10), 8, Presence::Free, Some(Nonce::from_bits(1)));
        assert_eq!(judge(&mut seeking, &left, at(10)), Wait::For(at(20)));
        // The same leader, whose mark is gone now: the version is new, the token is not.
        let mut late = view(at(15), 8, Presence::Free, None);
        late.entries.get_mut("x").unwrap().version = Version(9);
        assert_eq!(judge(&mut seeking, &late, at(15)), Wait::For(at(15)));
        assert_eq!(judge(&mut seeking, &late, at(30)), Wait::No(Version(9)));
        // Another leader that resigns is not waited for.
        let resigned = view(at(31), 10, Presence::Free, None);
        assert_eq!(judge(&mut seeking, &resigned, at(31)), Wait::No(Version(10)));
    }

    #[test]
    fn what_the_store_forgot_is_waited_for_as_long_as_it_may_be_believed() {
        let mut seeking = Seeking::new(DELAY, TTL);
        let held = view(at(4), 7, Presence::Held { expires_in: None }, Some(Nonce::from_bits(1)));
        assert_eq!(judge(&mut seeking, &held, at(4)), Wait::ForAChange);
        let wiped = View { asked: at(5), seen: at(5), ..View::default() };
        assert_eq!(judge(&mut seeking, &wiped, at(5)), Wait::For(TTL + DELAY));
        assert_eq!(judge(&mut seeking, &wiped, at(5) + TTL + DELAY), Wait::No(Version(0)));
        // Work that checks tokens does not wait, and whoever never saw it cannot know.
        let mut fenced = Seeking::new(Duration::ZERO, TTL);
        judge(&mut fenced, &held, at(4));
        assert_eq!(judge(&mut fenced, &wiped, at(5)), Wait::No(Version(0)));
        let mut newcomer = Seeking::new(DELAY, TTL);
        assert_eq!(judge(&mut newcomer, &wiped, at(5)), Wait::No(Version(0)));
    }

    #[test]
    fn whoever_comes_back_in_between_is_left_alone() {
        let mut seeking = Seeking::new(DELAY, TTL);
        let left = view(at(10), 8, Presence::Free, Some(Nonce::from_bits(1)));
        judge(&mut seeking, &left, at(10));
        let held = view(at(10), 9, Presence::Held { expires_in: None }, Some(Nonce::from_bits(1)));
        assert_eq!(judge(&mut seeking, &held, at(11)), Wait::ForAChange);
        let left = view(at(12), 9, Presence::Free, Some(Nonce::from_bits(1)));
        assert_eq!(judge(&mut seeking, &left, at(12)), Wait::For(DELAY));
    }

    #[test]
    fn after_a_claim_in_vain_an_old_view_says_nothing() {
        let mut seeking = Seeking::new(Duration::ZERO, TTL);
        let free = view(at(4), 7, Presence::Free, None);
        assert_eq!(judge(&mut seeking, &free, at(4)), Wait::No(Version(7)));
        seeking.in_vain(at(5), at(2));
        assert_eq!(judge(&mut seeking, &free, at(6)), Wait::For(at(1)));
        assert_eq!(judge(&mut seeking, &free, at(7)), Wait::ForALook);
        let fresh = view(at(6), 7, Presence::Free, None);
        assert_eq!(judge(&mut seeking, &fresh, at(7)), Wait::No(Version(7)));
    }

    #[test]
    fn the_pace_counts_from_the_vacancy_and_can_hold_back_for_good() {
        let mut seeking = Seeking::new(DELAY, TTL);
        let free = view(at(4), 7, Presence::Free, None);
        let slow = |_: &View| Some(Duration::from_secs(3));
        assert_eq!(seeking.judge(&free, &slot(), at(5), &slow), Wait::For(at(2)));
        assert_eq!(seeking.judge(&free, &slot(), at(7), &slow), Wait::No(Version(7)));
        assert_eq!(seeking.judge(&free, &slot(), at(99), &|_| None), Wait::ForAChange);
    }
}
