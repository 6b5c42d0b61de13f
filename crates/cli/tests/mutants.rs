//! A build that can be broken on purpose: that it says so, and breaks as told.

mod serving;

use std::process::{Command, Output};

use serde_json::Value;
use serving::Served;

fn frazil(mutant: &str, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
    command.args(args).env_remove("FRAZIL_LAYOUT").env("FRAZIL_MUTANT", mutant).output().unwrap()
}

#[test]
fn a_mutant_that_does_not_exist_is_refused_with_those_that_do() {
    for name in ["", "no-horizons", "NO-HORIZON", "no-horizon,json-number"] {
        let output = frazil(name, &["next", "--worker", "1"]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{name:?}: {said}");
        assert!(output.stdout.is_empty(), "{name:?}");
        for known in ["no-horizon,", "take-if-free,", "no-last-tick,", "json-number\n"] {
            assert!(said.contains(known), "{name:?}: {said}");
        }
    }
}

#[test]
fn a_mutant_that_exists_is_let_through() {
    let output = frazil("no-horizon", &["next", "--worker", "1"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_server_that_is_a_mutant_says_so_before_it_serves() {
    let mut served = Served::mutant("json-number");
    // Where it listens was said after that.
    let warned = served.heard().iter().any(|line| {
        line.contains("BROKEN ON PURPOSE") && line.contains("FRAZIL_MUTANT=json-number")
    });
    assert!(warned, "{:#?}", served.heard());
    served.wait_until_ready();
    let ids = ids_of(&served);
    assert!(ids.iter().all(Value::is_number), "{ids:?}");
}

#[test]
fn a_server_that_is_no_mutant_behaves_and_does_not_warn() {
    let served = Served::dev(&[]);
    assert!(!served.heard().iter().any(|line| line.contains("BROKEN")), "{:#?}", served.heard());
    let ids = ids_of(&served);
    assert!(ids.iter().all(Value::is_string), "{ids:?}");
}

/// As JSON has them; few and many are written by different code.
fn ids_of(served: &Served) -> Vec<Value> {
    let ids = |count: usize| {
        let (status, body) = served.request("POST", &format!("/v1/ids?count={count}"));
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let ids = answer["ids"].as_array().unwrap().clone();
        assert_eq!(ids.len(), count);
        ids
    };
    [ids(3), ids(3000)].concat()
}
