//! The rules of leases, searched exhaustively in the small.
//!
//! Two nodes share one worker. The store applies the production transitions of
//! [`frazil_coord::internal::rules`], the holders stamp by [`frazil_id::step`], and the network delays,
//! reorders, repeats and loses whatever it likes; processes die, presence ends at any moment and
//! every reading of a clock is arbitrary. After that each rule is broken in turn, and the search
//! must find the harm: a model that cannot fail shows nothing.
//!
//! In `over_time` clocks go as time does, and the nodes are the production plan, protocol and watchdog.

#[path = "model/node.rs"]
mod node;
#[path = "model/over_time.rs"]
mod over_time;
#[path = "model/search.rs"]
mod search;
#[path = "model/state.rs"]
mod state;
#[path = "model/store.rs"]
mod store;
#[path = "model/timed.rs"]
mod timed;
#[path = "model/variant.rs"]
mod variant;

use self::search::{STAMPED_ONCE, holds, is_caught};
use self::variant::{Calamity, Scope, Variant};

/// Clocks are arbitrary, the store keeps what it acknowledged.
const SOUND: Scope = Scope {
    variant: Variant::Correct,
    calamity: Calamity::None,
    clock_max: 2,
    window: 2,
    stints: 3,
    requests: 2,
};

/// Clocks agree, and the store suffers a calamity.
const fn struck(calamity: Calamity) -> Scope {
    Scope { calamity, clock_max: 3, stints: 2, requests: 1, ..SOUND }
}

#[test]
fn times_of_tenures_are_disjoint_whatever_clocks_and_networks_do() {
    holds(SOUND);
}

#[test]
fn times_of_tenures_are_disjoint_on_longer_clocks_too() {
    holds(Scope { clock_max: 3, stints: 2, ..SOUND });
}

#[test]
fn without_a_horizon_a_stale_holder_is_caught() {
    is_caught(Scope { variant: Variant::NoHorizon, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn a_horizon_that_expires_with_presence_is_caught() {
    is_caught(Scope { variant: Variant::HorizonInTheExpiringKey, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn a_start_at_the_wall_clock_is_caught() {
    is_caught(Scope { variant: Variant::StartAtWallClock, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn an_extension_without_token_and_nonce_is_caught() {
    is_caught(Scope { variant: Variant::ExtendWithoutToken, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn use_before_the_acknowledgement_is_caught() {
    is_caught(Scope { variant: Variant::UseBeforeAcknowledgement, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn a_worker_taken_again_by_name_is_caught() {
    is_caught(Scope { variant: Variant::ReacquireByName, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn a_release_before_the_close_is_caught() {
    is_caught(Scope { variant: Variant::ReleaseBeforeClose, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn a_tenure_resumed_after_its_release_is_caught() {
    is_caught(Scope { variant: Variant::ResumedAfterRelease, ..SOUND }, STAMPED_ONCE);
}

#[test]
fn a_claim_of_whatever_is_free_is_caught() {
    // The claim that comes again must be young enough for the floor it meets.
    let scope = Scope { variant: Variant::TakeIfFree, clock_max: 3, stints: 2, ..SOUND };
    is_caught(scope, STAMPED_ONCE);
}

#[test]
fn a_wiped_store_is_survived_above_a_quarantine() {
    holds(struck(Calamity::Wipe));
}

#[test]
fn floors_stacked_beyond_the_quarantine_are_caught() {
    is_caught(Scope { variant: Variant::StackedFloors, ..struck(Calamity::Wipe) }, STAMPED_ONCE);
}

#[test]
fn a_lost_record_is_survived() {
    holds(struck(Calamity::LostRecord));
}

#[test]
fn a_lost_record_mended_by_an_old_clock_is_caught() {
    let variant = Variant::MendedByAnOldClock;
    is_caught(Scope { variant, ..struck(Calamity::LostRecord) }, STAMPED_ONCE);
}

#[test]
fn a_store_rolled_back_is_survived_above_a_quarantine_without_its_holders() {
    holds(struck(Calamity::Rollback));
}

#[test]
fn a_store_rolled_back_without_a_quarantine_is_not_covered() {
    is_caught(Scope { variant: Variant::RolledBack, ..struck(Calamity::Rollback) }, STAMPED_ONCE);
}

#[test]
fn a_quarantine_alone_does_not_end_holders_that_a_rollback_brought_back() {
    let variant = Variant::QuarantinedOnly;
    is_caught(Scope { variant, ..struck(Calamity::Rollback) }, STAMPED_ONCE);
}
