use super::*;

const RESTART: Restart = Restart {
    tries: 3,
    first_pause: Duration::from_secs(1),
    pause_max: Duration::from_secs(3),
    hold_off: Duration::from_secs(10),
    hold_off_max: Duration::from_secs(15),
    steady: Duration::from_secs(60),
};

fn failed(failures: &mut Failures) -> AfterFailure {
    failures.failed(&RESTART, Duration::ZERO)
}

fn restart(seconds: u64) -> AfterFailure {
    AfterFailure::Restart(Duration::from_secs(seconds))
}

fn leave(seconds: u64) -> AfterFailure {
    AfterFailure::LeaveToOthers(Duration::from_secs(seconds))
}

#[test]
fn pauses_grow_up_to_a_limit_and_then_others_have_it_for_longer_and_longer() {
    let mut failures = Failures::default();
    let steps: Vec<_> = (0..12).map(|_| failed(&mut failures)).collect();
    let round = [restart(1), restart(2), restart(3)];
    assert_eq!(steps[..3], round);
    assert_eq!(steps[3], leave(10));
    assert_eq!(steps[4..7], round);
    assert_eq!(steps[7], leave(15));
    assert_eq!(steps[11], leave(15));
}

#[test]
fn a_long_run_forgives_everything() {
    let mut failures = Failures::default();
    for _ in 0..6 {
        failed(&mut failures);
    }
    assert_eq!(failures.failed(&RESTART, RESTART.steady), restart(1));
    assert_eq!(failed(&mut failures), restart(2));
}

#[test]
fn no_number_of_failures_overflows() {
    let restart = Restart { tries: u32::MAX, ..RESTART };
    let mut failures = Failures { tried: u32::MAX - 1, rounds: u32::MAX };
    assert_eq!(failures.failed(&restart, Duration::ZERO), AfterFailure::Restart(restart.pause_max));
    let next = failures.failed(&restart, Duration::ZERO);
    assert_eq!(next, AfterFailure::LeaveToOthers(restart.hold_off_max));
}
