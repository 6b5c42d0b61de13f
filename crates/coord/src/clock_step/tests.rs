use super::*;

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn steady_time_is_believed() {
    let mut filter = StepFilter::new(1_000_000, at(10));
    for seconds in [0, 1, 100, 10_000] {
        let unix = 1_000_000 + seconds * 1000;
        assert_eq!(filter.believe(unix, at(10 + seconds), true), unix);
    }
}

#[test]
fn a_jump_ahead_is_not_believed_at_once() {
    let mut filter = StepFilter::new(1_000_000, at(0));
    let jumped = 1_000_000 + 3_600_000;
    assert_eq!(filter.believe(jumped, at(0), true), 1_000_000);
    // A thousandth more than has elapsed: clocks may run that fast.
    assert_eq!(filter.believe(jumped + 39_000, at(39), true), 1_039_039);
    assert!(!filter.notice(jumped + 39_000, at(39)));
    assert!(filter.notice(jumped + 40_000, at(40)));
    assert_eq!(filter.believe(jumped + 40_000, at(40), true), jumped + 40_000);
    assert!(!filter.notice(jumped + 41_000, at(41)));
}

#[test]
fn a_jump_that_goes_back_starts_the_time_anew() {
    let mut filter = StepFilter::new(1_000_000, at(0));
    filter.believe(9_000_000, at(0), true);
    assert_eq!(filter.believe(1_050_000, at(50), true), 1_050_000);
    assert!(filter.believe(9_000_000, at(70), true) < 2_000_000);
}

#[test]
fn a_jump_that_the_store_confirms_is_believed_at_once() {
    let mut filter = StepFilter::new(1_000_000, at(0));
    assert!(filter.confirm(9_000_000, at(0)));
    assert_eq!(filter.believe(9_001_000, at(1), true), 9_001_000);
    assert!(!filter.confirm(9_002_000, at(2)), "once");
}

#[test]
fn a_clock_set_back_is_followed_down() {
    let mut filter = StepFilter::new(1_000_000, at(0));
    assert_eq!(filter.believe(400_000, at(5), true), 400_000);
}
