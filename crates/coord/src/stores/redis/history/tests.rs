use super::super::keys::Keys;
use super::*;
use crate::namespace::Namespace;
use crate::slot::Group;

const NOW: UnixMs = 1_000_000;
const ISOLATION_MS: u64 = 15_000;
const IDLE: &str = "aof_enabled:1\r\naof_rewrite_in_progress:0\r\naof_rewrite_scheduled:0\r\n\
                    rdb_bgsave_in_progress:0\r\naof_last_write_status:ok\r\naof_base_size:88\r\n\
                    aof_rewrites:0\r\naof_pending_bio_fsync:0\r\n";

/// An answer of a server in a history, at a time of its clock.
fn answer(id: &str, clock: UnixMs, persistence: &str) -> Answer {
    let micros = (clock * 1000).to_string();
    let head = ["look", &micros, id, "", persistence, "", "1", "5", "", "", "", "", "", "", ""];
    let keys = Keys::new("frazil", &Namespace::default());
    Answer::of(&head.map(str::to_owned), 0, &keys, Group::Workers).unwrap()
}

/// What is remembered of a history that began when the clock showed 700 and that nothing is known to
/// lack.
fn stored(id: &str, level: Level) -> Stored {
    Stored { id: id.into(), began: 700, level, was_marked: true, ..Stored::default() }
}

/// What is remembered after a history that began now: when it began, and when it forked.
fn after(before: &Stored, level: Level, overlap_ms: u64) -> (UnixMs, UnixMs, Level) {
    let next = before.next(&answer("run2:b:", NOW, ""), level, overlap_ms);
    assert_eq!(next.id, "run2:b:");
    (next.began, next.forked, next.level)
}

#[test]
fn a_restart_in_place_loses_no_more_than_had_not_settled() {
    let before = stored("run1:a:", Level::Settled);
    assert_eq!(after(&before, Level::Settled, 0), (NOW, 0, Level::Settled));
    let before = stored("run1:a:", Level::Everything);
    assert_eq!(after(&before, Level::Settled, 0), (NOW, 0, Level::Settled));
    let before = stored("run1:a:", Level::Settled);
    assert_eq!(after(&before, Level::Everything, 0), (NOW, 0, Level::Everything));
}

#[test]
fn a_restart_of_what_keeps_everything_loses_nothing() {
    let before = stored("run1:a:", Level::Everything);
    assert_eq!(after(&before, Level::Everything, 0), (700, 0, Level::Everything));
}

#[test]
fn where_nothing_is_kept_before_or_now_all_that_was_promised_may_be_lost() {
    for (before, level) in [
        (Level::Nothing, Level::Nothing),
        (Level::Nothing, Level::Settled),
        (Level::Nothing, Level::Everything),
        (Level::Settled, Level::Nothing),
        (Level::Everything, Level::Nothing),
    ] {
        assert_eq!(after(&stored("run1:a:", before), level, 0), (700, NOW, level), "{before:?}");
    }
}

#[test]
fn where_another_server_may_go_on_that_time_is_added() {
    let before = stored("run1:a:", Level::Settled);
    let expected = (700, NOW + ISOLATION_MS, Level::Settled);
    assert_eq!(after(&before, Level::Settled, ISOLATION_MS), expected);
}

#[test]
fn what_forked_later_still_counts_and_the_same_history_changes_nothing() {
    let forked = NOW + 99_000;
    let before = Stored { forked, ..stored("run1:a:", Level::Nothing) };
    assert_eq!(after(&before, Level::Nothing, 0), (700, forked, Level::Nothing));
    let same = Stored { forked, ..stored("run2:b:", Level::Settled) };
    assert_eq!(after(&same, Level::Nothing, ISOLATION_MS), (700, forked, Level::Settled));
}

#[test]
fn after_a_version_that_did_not_wait_nothing_counts_as_settled() {
    let old = Stored { replid: "b".into(), old_since: 900, ..Stored::default() };
    assert_eq!(after(&old, Level::Settled, 0), (0, 900, Level::Nothing), "the same server");
    let old = Stored { replid: "a".into(), old_since: 900, ..Stored::default() };
    assert_eq!(after(&old, Level::Settled, 0), (0, NOW, Level::Nothing), "another one");
    // It came back, and wrote in the history before this one.
    let shared = Stored { replid: "a".into(), ..stored("run1:a:", Level::Settled) };
    assert_eq!(after(&shared, Level::Settled, 0), (700, NOW, Level::Nothing));
}

#[test]
fn if_records_and_marks_are_gone_all_that_was_promised_must_pass() {
    let mut gone = answer("run1:a:", NOW, "");
    (gone.is_marked, gone.records) = (false, 0);
    let before = stored("run1:a:", Level::Everything);
    assert_eq!(before.next(&gone, Level::Everything, 0).forked, NOW);
    let new = Stored { was_marked: false, ..before.clone() };
    assert_eq!(new.next(&gone, Level::Everything, 0).forked, 0, "a kind that was never used");
    gone.records = 3;
    assert_eq!(before.next(&gone, Level::Everything, 0).forked, 0, "records give marks back");
}

/// A watermark that sees what a server shows, second by second.
#[derive(Default)]
struct Watched(Watermark);

impl Watched {
    /// Looks at a time in milliseconds, and tells what has settled.
    fn look(&mut self, at: u64, persistence: &str) -> UnixMs {
        self.look_by_clock(at, NOW + at, persistence)
    }

    fn look_by_clock(&mut self, at: u64, clock: UnixMs, persistence: &str) -> UnixMs {
        let at = Duration::from_millis(at);
        self.0.observe(&answer("run1:a:", clock, persistence), at, at);
        self.0.settled("run1:a:")
    }
}

#[test]
fn two_idle_looks_prove_what_was_written_before_the_first() {
    let mut watched = Watched::default();
    assert_eq!(watched.look(0, IDLE), 0);
    assert_eq!(watched.look(2099, IDLE), 0, "its sync may not have begun");
    assert_eq!(watched.look(2100, IDLE), NOW);
    assert_eq!(watched.0.settled("run2:b:"), 0, "of another history");
    assert_eq!(watched.look(4300, IDLE), NOW + 2099);
}

#[test]
fn a_sync_under_way_proves_nothing_and_is_waited_for() {
    let busy = IDLE.replace("fsync:0", "fsync:1");
    let mut watched = Watched::default();
    assert_eq!(watched.look(0, &busy), 0);
    assert_eq!(watched.look(3000, IDLE), 0, "a sync that began before the write ended");
    assert_eq!(watched.look(6000, &busy), 0);
    assert_eq!(watched.look(6100, IDLE), NOW + 3000);
}

#[test]
fn a_log_that_is_not_well_or_not_the_same_proves_nothing() {
    for trouble in [
        IDLE.replace("aof_enabled:1", "aof_enabled:0"),
        IDLE.replace("status:ok", "status:err"),
        IDLE.replace("rewrite_in_progress:0", "rewrite_in_progress:1"),
        IDLE.replace("scheduled:0", "scheduled:1"),
        IDLE.replace("bgsave_in_progress:0", "bgsave_in_progress:1"),
        IDLE.replace("base_size:88", "base_size:90"),
        IDLE.replace("rewrites:0", "rewrites:1"),
        String::new(),
    ] {
        let mut watched = Watched::default();
        watched.look(0, IDLE);
        assert_eq!(watched.look(1000, &trouble), 0);
        assert_eq!(watched.look(3000, IDLE), 0, "{trouble}");
    }
}

#[test]
fn a_clock_that_jumps_proves_nothing_early() {
    let mut watched = Watched::default();
    watched.look(0, IDLE);
    assert_eq!(watched.look_by_clock(100, NOW + 60_000, IDLE), 0, "only our own time counts");
    assert_eq!(watched.look_by_clock(2150, NOW + 62_000, IDLE), NOW);
    // Set back: what is written now must not count as older than what was proved.
    let back = NOW - 5000;
    assert!(watched.look_by_clock(2200, back, IDLE) < back);
    assert!(watched.look_by_clock(4200, back + 2000, IDLE) < back);
    assert_eq!(watched.look_by_clock(4400, back + 2200, IDLE), back);
}

#[test]
fn many_looks_do_not_push_out_what_they_prove() {
    let mut watched = Watched::default();
    let settled = (0..400).map(|turn| watched.look(turn * 10, IDLE)).max().unwrap();
    assert!(settled > NOW + 1500, "{settled}");
    assert!(watched.0.looks.len() <= LOOKS_MAX);
}
