//! Errors say what happened once, and keep what they rest on.

use std::error::Error;
use std::io;

use frazil::coord::{self, ErrorKind, Timing};
use frazil::coord::{LeaseState, Refusal};
use frazil::id::{NotReady, StartError as GeneratorError};
use frazil::{Node, NotIssued, NotRotated, NotScoped, StartError};

/// The texts of an error and of what it rests on, the outermost first.
fn chain(error: &dyn Error) -> Vec<String> {
    let causes = std::iter::successors(error.source(), |cause| (*cause).source());
    [error.to_string()].into_iter().chain(causes.map(ToString::to_string)).collect()
}

fn all() -> Vec<Box<dyn Error>> {
    let behind = NotReady::Closed;
    let clock = GeneratorError::Clock(behind);
    let store = || {
        coord::Error::new(ErrorKind::Denied, "read", "memory:", "no password")
            .with_source(io::Error::other("not let in"))
    };
    let timing = Timing::default().with_heartbeat(std::time::Duration::ZERO);
    let refusal = || Refusal::Store(store());
    vec![
        Box::new(StartError::Url("nonsense".parse::<coord::StoreUrl>().unwrap_err())),
        Box::new(StartError::NoUrl),
        Box::new(StartError::NoStateDirectory),
        Box::new(StartError::Lanes(0)),
        Box::new(StartError::Timing(timing.checked().unwrap_err())),
        Box::new(StartError::Options(clock)),
        Box::new(StartError::Thread(io::Error::other("no more"))),
        Box::new(StartError::Store(store())),
        Box::new(StartError::Refused(refusal())),
        Box::new(NotIssued::NotReady(behind)),
        Box::new(NotIssued::NoWorker(LeaseState::Refused(refusal()))),
        Box::new(NotIssued::Unusable(clock)),
        Box::new(NotIssued::Forked),
        Box::new(NotRotated::Refused(refusal())),
        Box::new(NotRotated::Ended),
        Box::new(NotScoped::NotIssued(NotIssued::Unusable(clock))),
        Box::new(NotScoped::Horizon),
    ]
}

#[test]
fn no_error_repeats_what_it_rests_on() {
    for error in all() {
        let texts = chain(&*error);
        for (place, text) in texts.iter().enumerate() {
            assert!(!text.is_empty());
            let after = &texts[place + 1..];
            assert!(!after.iter().any(|cause| text.contains(cause.as_str())), "{texts:?}");
        }
    }
}

#[test]
fn a_cause_is_found_however_deep_it_is() {
    let clock = GeneratorError::Clock(NotReady::Closed);
    let errors: [Box<dyn Error>; 3] = [
        Box::new(StartError::Options(clock)),
        Box::new(NotIssued::Unusable(clock)),
        Box::new(NotScoped::NotIssued(NotIssued::Unusable(clock))),
    ];
    for error in errors {
        assert_eq!(chain(&*error).last(), Some(&NotReady::Closed.to_string()), "{error:?}");
    }
    let thread = StartError::Thread(io::Error::other("no more"));
    assert_eq!(chain(&thread).last().unwrap(), "no more");
}

#[test]
fn the_long_form_says_each_cause_once() {
    for error in all() {
        let (texts, whole) = (chain(&*error), format!("{error:#}"));
        for text in &texts {
            assert_eq!(whole.matches(text.as_str()).count(), 1, "{text} in {whole}");
        }
    }
}

#[tokio::test]
async fn a_url_that_makes_no_sense_is_an_error_of_the_start() {
    let builder = Node::builder().store("no store").lanes(1);
    assert!(matches!(builder.check(), Err(StartError::Url(_))));
    assert!(matches!(builder.start().await, Err(StartError::Url(_))));
}
