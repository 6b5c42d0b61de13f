//! What is searched while time goes by: several small worlds, each with what its rules are about.

use crate::timed::scope::{Keeps, NEVER, Omitted, Scope, at_most};
use crate::timed::search::{holds, is_caught_without};

/// Nothing happens.
const QUIET: Scope = Scope {
    omitted: Omitted::Nothing,
    keeps: Keeps::Everything,
    heartbeats: [20, 20],
    ahead: [0, 0],
    end: 60,
    step_ms: 2500,
    start: NEVER,
    crash: NEVER,
    release: NEVER,
    freeze: NEVER,
    cut: NEVER,
    operator_release: NEVER,
    operator_quarantine: NEVER,
    sync: NEVER,
    lose: NEVER,
    wipe: NEVER,
    slow: NEVER,
};

/// The store forgets everything, twice, and newcomers start at any time.
const WIPED: Scope = Scope {
    start: at_most(2, 5, 35),
    wipe: at_most(2, 5, 35),
    crash: at_most(1, 5, 35),
    end: 55,
    ..QUIET
};

/// The holder renews every 40 s, and whoever wants its worker every 5 s; their clocks differ by 2 s.
const UNEQUAL: Scope = Scope {
    heartbeats: [40, 5],
    ahead: [1, -1],
    wipe: at_most(1, 0, 15),
    start: at_most(1, 0, 20),
    crash: at_most(1, 0, 5),
    operator_quarantine: at_most(1, 0, 10),
    end: 45,
    ..QUIET
};

/// As that, and two requests take as long as a request may.
const SLOW: Scope = Scope {
    slow: at_most(2, 0, 20),
    wipe: at_most(1, 0, 5),
    start: at_most(1, 0, 5),
    crash: NEVER,
    operator_quarantine: NEVER,
    end: 35,
    ..UNEQUAL
};

/// The holder is frozen while the store forgets everything, and its next request is slow.
const FROZEN: Scope = Scope { freeze: at_most(1, 0, 10), slow: at_most(1, 15, 30), ..SLOW };

/// The store restarts twice without the end of what it acknowledged, and the holder is cut off.
const LOSING: Scope = Scope {
    keeps: Keeps::Settled,
    heartbeats: [10, 10],
    step_ms: 10_000,
    start: at_most(1, 30, 30),
    cut: at_most(1, 10, 10),
    sync: at_most(2, 0, 50),
    lose: at_most(2, 20, 50),
    end: 70,
    ..QUIET
};

/// As that, and the holder is cut off after some renewals; the clock of the other is ahead.
const RENEWED: Scope = Scope {
    ahead: [0, 1],
    start: at_most(1, 20, 20),
    cut: at_most(1, 20, 20),
    lose: at_most(2, 20, 30),
    end: 60,
    ..LOSING
};

/// As that, and at once, while processes end; the clock of the holder is ahead.
const UNSETTLED: Scope = Scope {
    ahead: [8, 0],
    start: at_most(2, 0, 10),
    crash: at_most(1, 0, 10),
    cut: at_most(1, 0, 0),
    sync: at_most(1, 0, 20),
    lose: at_most(2, 0, 10),
    end: 50,
    ..LOSING
};

/// As that, and processes release what they hold, and the answer to a request is late or lost.
const RELEASED: Scope = Scope {
    start: at_most(1, 0, 20),
    release: at_most(2, 0, 20),
    cut: NEVER,
    slow: at_most(1, 0, 0),
    sync: at_most(1, 0, 20),
    lose: at_most(2, 0, 20),
    end: 40,
    ..LOSING
};

/// As that, and an operator releases the worker of a holder that is not there.
const OPERATED: Scope = Scope {
    start: at_most(1, 50, 50),
    operator_release: at_most(1, 50, 50),
    sync: at_most(2, 0, 70),
    lose: at_most(2, 50, 50),
    end: 90,
    ..LOSING
};

/// The store keeps nothing for sure, and restarts twice.
const FORGETFUL: Scope = Scope {
    keeps: Keeps::Nothing,
    heartbeats: [2, 2],
    step_ms: 5000,
    start: at_most(1, 0, 10),
    cut: at_most(1, 0, 0),
    sync: at_most(1, 0, 10),
    lose: at_most(2, 0, 10),
    end: 50,
    ..LOSING
};

#[test]
fn a_store_that_forgets_everything_twice_is_survived() {
    holds(WIPED);
}

#[test]
fn unequal_heartbeats_do_not_matter_to_a_store_that_forgets_everything() {
    holds(UNEQUAL);
}

#[test]
fn slow_requests_do_not_matter_to_a_store_that_forgets_everything() {
    holds(SLOW);
}

#[test]
fn a_process_that_was_frozen_meanwhile_uses_nothing_that_others_use() {
    holds(FROZEN);
}

#[test]
fn a_store_that_loses_the_end_twice_is_survived_by_takeovers() {
    holds(LOSING);
}

#[test]
fn a_store_that_loses_the_end_twice_is_survived_by_renewals() {
    holds(RENEWED);
}

#[test]
fn a_store_that_loses_the_end_twice_is_survived_by_what_has_not_settled() {
    holds(UNSETTLED);
}

#[test]
fn a_store_that_loses_the_end_twice_is_survived_by_releases() {
    holds(RELEASED);
}

#[test]
fn a_store_that_loses_the_end_twice_is_survived_by_operators() {
    holds(OPERATED);
}

#[test]
fn a_store_that_keeps_nothing_for_sure_is_survived() {
    holds(FORGETFUL);
}

#[test]
fn a_newcomer_that_does_not_wait_is_caught() {
    is_caught_without(Omitted::Silence, WIPED);
}

#[test]
fn a_newcomer_that_waits_for_its_own_heartbeat_only_is_caught() {
    is_caught_without(Omitted::SilenceForOthersHeartbeats, UNEQUAL);
}

#[test]
fn a_namespace_that_keeps_its_incarnation_is_caught() {
    is_caught_without(Omitted::Incarnations, WIPED);
}

#[test]
fn a_holder_that_does_not_read_meta_is_caught() {
    is_caught_without(Omitted::ReadingMeta, UNEQUAL);
}

#[test]
fn a_holder_that_does_not_raise_the_quarantine_is_caught() {
    is_caught_without(Omitted::RaisingTheQuarantine, UNEQUAL);
}

#[test]
fn a_lane_without_a_leash_is_caught() {
    is_caught_without(Omitted::Watchdog, FROZEN);
}

#[test]
fn a_lane_that_goes_on_after_a_stop_before_anything_is_heard_is_caught() {
    is_caught_without(Omitted::HearingAfterAStop, FROZEN);
}

#[test]
fn a_lane_that_goes_on_although_others_may_have_come_is_caught() {
    is_caught_without(Omitted::ClosingWhenLate, FROZEN);
}

#[test]
fn an_extension_used_as_far_as_it_was_acknowledged_is_caught() {
    is_caught_without(Omitted::CapOfExtensions, RENEWED);
}

#[test]
fn an_acquisition_used_as_far_as_it_was_acknowledged_is_caught() {
    is_caught_without(Omitted::CapOfAcquisitions, UNSETTLED);
}

#[test]
fn a_takeover_used_before_it_has_settled_is_caught() {
    is_caught_without(Omitted::SettledTakeovers, LOSING);
}

#[test]
fn a_start_at_the_recorded_horizon_after_a_restart_is_caught() {
    is_caught_without(Omitted::MoreThanTheRecordAfterARestart, RENEWED);
}

#[test]
fn a_start_without_regard_to_the_time_of_the_restart_is_caught() {
    is_caught_without(Omitted::TimeOfTheRestart, UNSETTLED);
}

#[test]
fn a_restart_that_nobody_notices_is_caught() {
    is_caught_without(Omitted::Histories, UNSETTLED);
}

#[test]
fn a_release_by_an_operator_that_counts_as_the_holders_own_is_caught() {
    is_caught_without(Omitted::OperatorsReleasesAreTakeovers, OPERATED);
}

#[test]
fn a_restart_of_a_store_that_keeps_nothing_is_caught_without_its_time() {
    is_caught_without(Omitted::TimeOfTheFork, FORGETFUL);
}

#[test]
fn a_holder_that_lapsed_and_goes_on_in_a_history_that_may_lack_others_is_caught() {
    is_caught_without(Omitted::LapsedHoldersGiveUp, FORGETFUL);
}
