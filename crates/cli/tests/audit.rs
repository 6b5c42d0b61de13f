//! `frazil audit` as a user meets it.

#[path = "audit/desk.rs"]
mod desk;
#[path = "audit/fuzz.rs"]
mod fuzz;

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

use frazil_id::{Id, Layout, Parts};

use self::desk::{Desk, objects};

fn id(tick: u64, worker: u64, sequence: u64) -> u64 {
    Layout::FRAZIL.encode(Parts { tick, worker, sequence }).unwrap().to_u64()
}

fn lines(ids: impl IntoIterator<Item = u64>) -> String {
    ids.into_iter().fold(String::new(), |mut text, id| {
        writeln!(text, "{id}").unwrap();
        text
    })
}

#[test]
fn clean_files_are_told_to_be_clean() {
    let desk = Desk::new();
    desk.write("a", lines((0..5000).map(|at| id(1000 + at / 100, 3, at % 100))));
    desk.write("b", lines((0..200).map(|at| id(1000 + at, 4, 0))));
    let told = desk.audit(&["a", "b"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    for line in [
        "checked    5200 IDs in 2 files",
        "distinct   5200",
        "duplicates 0",
        "order      each file ascends",
        "first      2024-01-01T00:00:01.000Z",
        "last       2024-01-01T00:00:01.199Z",
        "workers    2: 3 (5000), 4 (200)",
        "fullest    100 IDs of worker 3 at 2024-01-01T00:00:01.000Z",
        "verdict    clean",
    ] {
        assert!(told.stdout.lines().any(|told| told == line), "{line}: {}", told.stdout);
    }
}

#[test]
fn a_planted_duplicate_is_found_with_both_places() {
    let desk = Desk::new();
    let clean: Vec<u64> = (0..50_000).map(|at| id(1000 + at / 100, 3, at % 100)).collect();
    let mut other: Vec<u64> = (0..50_000).map(|at| id(1000 + at / 100, 4, at % 100)).collect();
    desk.write("a", lines(clean.iter().copied()));
    desk.write("b", lines(other.iter().copied()));
    // The control: without the plant nothing is found.
    assert_eq!(desk.audit(&["a", "b"]).code, Some(0));
    for (planted, first_line) in [(0, 1), (49_999, 50_000), (1234, 1235)] {
        other.insert(40_000, clean[planted]);
        desk.write("b", lines(other.iter().copied()));
        let told = desk.audit(&["a", "b"]);
        let line = format!("duplicate: b:40001: ID {} was in a:{first_line}", clean[planted]);
        assert_eq!(told.code, Some(1));
        assert!(told.stdout.lines().any(|told| told == line), "{line}: {}", told.stdout);
        assert!(told.stdout.contains("\nduplicates 1\n"));
        assert!(told.stdout.ends_with("verdict    findings\n"));
        other.remove(40_000);
    }
}

#[test]
fn json_has_an_object_for_each_finding_and_one_for_the_verdict() {
    let desk = Desk::new();
    desk.write("a", lines([id(5, 1, 0), id(6, 1, 0)]));
    desk.write("b", lines([id(7, 2, 0), id(6, 1, 0), u64::MAX]));
    let told = desk.audit(&["a", "b", "--json", "--ordered"]);
    assert_eq!(told.code, Some(1));
    let [duplicate, outside, order, verdict] = &objects(&told.stdout)[..] else {
        panic!("{}", told.stdout);
    };
    assert_eq!(duplicate["finding"], "duplicate");
    assert_eq!(duplicate["id"], id(6, 1, 0).to_string());
    assert_eq!(
        (&duplicate["first"]["file"], &duplicate["first"]["line"]),
        (&"a".into(), &2.into())
    );
    assert_eq!(
        (&duplicate["again"]["file"], &duplicate["again"]["line"]),
        (&"b".into(), &2.into())
    );
    assert_eq!((&outside["finding"], &outside["at"]["line"]), (&"outside".into(), &3.into()));
    assert_eq!((&order["finding"], &order["breaks"]), (&"order".into(), &1.into()));
    assert_eq!((&order["before"]["line"], &order["after"]["line"]), (&1.into(), &2.into()));
    assert_eq!(order["after"]["id"], id(6, 1, 0).to_string());
    assert_eq!(verdict["verdict"], "findings");
    for (key, value) in
        [("checked", 5), ("distinct", 3), ("duplicates", 1), ("outside", 1), ("order_breaks", 1)]
    {
        assert_eq!(verdict[key], value, "{key}");
    }
    assert_eq!(verdict["worker_ids"].as_array().unwrap().len(), 2);
    assert_eq!(verdict["files"][1]["ids"], 3);
}

#[test]
fn order_is_information_unless_it_is_asked_for() {
    let desk = Desk::new();
    desk.write("a", lines([id(5, 1, 0), id(7, 1, 0), id(6, 1, 0)]));
    let told = desk.audit(&["a"]);
    assert_eq!(told.code, Some(0));
    let line = format!(
        "order: a:3: ID {} is not above {} of a:2; 1 time in this file",
        id(6, 1, 0),
        id(7, 1, 0)
    );
    assert!(told.stdout.lines().any(|told| told == line), "{}", told.stdout);
    assert_eq!(desk.audit(&["a", "--ordered"]).code, Some(1));
    desk.write("a", lines([id(5, 1, 0), id(6, 1, 0), id(7, 1, 0)]));
    assert_eq!(desk.audit(&["a", "--ordered"]).code, Some(0));
}

#[test]
fn an_id_outside_the_layout_is_a_finding_and_another_layout_takes_it() {
    let desk = Desk::new();
    desk.write("a", lines([id(5, 1, 0), 1 << 63]));
    let told = desk.audit(&["a"]);
    assert_eq!(told.code, Some(1));
    assert!(
        told.stdout.contains("outside: a:2: ID 9223372036854775808 is above"),
        "{}",
        told.stdout
    );
    assert_eq!(desk.audit(&["a", "--layout", "discord"]).code, Some(0));
}

#[test]
fn a_reader_that_is_gone_takes_nothing_away_from_the_verdict() {
    let desk = Desk::new();
    desk.write("a", lines([1, 1]));
    for args in [&["a"][..], &["a", "--json"]] {
        assert_eq!(desk.audit_for_nobody(args), Some(1), "{args:?}");
    }
    desk.write("b", lines([1, 2]));
    assert_eq!(desk.audit_for_nobody(&["b"]), Some(0), "the control");
}

#[test]
fn empty_input_is_clean_and_the_user_is_told() {
    let desk = Desk::new();
    desk.write("a", "");
    desk.write("b", "\n\r\n\n");
    let told = desk.audit(&["a", "b"]);
    assert_eq!(told.code, Some(0));
    assert!(told.stderr.contains("no ID was read"), "{}", told.stderr);
    assert!(told.stdout.contains("checked    0 IDs in 2 files\n"), "{}", told.stdout);
    let verdict = &objects(&desk.audit(&["a", "--json"]).stdout)[0];
    assert_eq!((&verdict["checked"], &verdict["first"]), (&0.into(), &serde_json::Value::Null));
}

#[test]
fn what_cannot_be_read_is_told_and_does_not_hide_what_can() {
    let desk = Desk::new();
    desk.write("a", lines([1, 2]));
    desk.write("twice", lines([2, 2]));
    let told = desk.audit(&["missing", "a"]);
    assert_eq!(told.code, Some(3));
    assert!(told.stderr.starts_with("error: missing cannot be read: "), "{}", told.stderr);
    assert!(told.stdout.ends_with("verdict    incomplete\n"), "{}", told.stdout);
    assert_eq!(desk.audit(&["."]).code, Some(3));
    assert_eq!(desk.audit(&["missing", "twice"]).code, Some(1), "a duplicate is certain");
}

#[test]
fn malformed_lines_are_told_with_their_place_and_the_rest_is_checked() {
    let desk = Desk::new();
    desk.write("a", "1\n2\nthree\n\u{1b}[31m\n2\n4\n");
    let told = desk.audit(&["a"]);
    assert_eq!(told.code, Some(1));
    let [first, second] = told.stderr.lines().collect::<Vec<_>>()[..] else {
        panic!("{}", told.stderr);
    };
    assert!(first.starts_with("error: a:3: \"three\" is not an ID: "), "{first}");
    assert!(second.starts_with("error: a:4: \"\\u{1b}[31m\" is not an ID: "), "{second}");
    assert!(told.stdout.contains("duplicate: a:5: ID 2 was in a:2\n"), "{}", told.stdout);
    assert!(told.stdout.contains("malformed  2 lines\n"));
    desk.write("a", "1\n2\nthree\n");
    assert_eq!(desk.audit(&["a"]).code, Some(2));
    desk.write("a", "x\n".repeat(1000));
    let told = desk.audit(&["a"]);
    assert_eq!(told.stderr.lines().count(), 11);
    assert!(told.stderr.ends_with("error: 990 more lines without an ID\n"), "{}", told.stderr);
}

#[test]
fn a_gigantic_line_is_one_complaint() {
    let desk = Desk::new();
    let mut text = b"1\n".to_vec();
    text.resize(40_000_000, b'7');
    text.extend_from_slice(b"\n1\n");
    desk.write("a", text);
    let told = desk.audit(&["a"]);
    assert_eq!(told.code, Some(1));
    assert_eq!(told.stderr.lines().count(), 1);
    assert!(
        told.stderr.contains("error: a:2: \"7777") && told.stderr.len() < 300,
        "{}",
        told.stderr
    );
    assert!(told.stdout.contains("duplicate: a:3: ID 1 was in a:1\n"), "{}", told.stdout);
}

#[test]
fn stdin_is_read_once_so_the_second_place_is_told() {
    let desk = Desk::new();
    desk.write("a", lines([8, 9]));
    let told = desk.audit_input(&["-"], "5\n6\n5\n");
    assert_eq!(told.code, Some(1));
    let line = "duplicate: stdin:3: ID 5 was there before, in what cannot be read twice";
    assert!(told.stdout.lines().any(|told| told == line), "{}", told.stdout);
    let told = desk.audit_input(&["a", "-"], "7\n9\n");
    assert!(told.stdout.contains("duplicate: stdin:2: ID 9 was in a:2\n"), "{}", told.stdout);
    assert_eq!(desk.audit_input(&["-", "a"], "7\n10\n").code, Some(0));
}

#[test]
fn every_form_is_read() {
    let desk = Desk::new();
    for &format in frazil_id::Format::ALL {
        let text = |id| format!("{}\n", Id::from_u64(id).text(format));
        desk.write("a", [id(1, 2, 3), id(2, 2, 3), id(1, 2, 3)].map(text).concat());
        let told = desk.audit(&["a", "--format", format.name()]);
        assert_eq!((told.code, told.stderr.as_str()), (Some(1), ""), "{format}");
        assert!(told.stdout.contains("duplicate: a:3: ID "), "{format}: {}", told.stdout);
    }
    let bytes = |ids: &[u64]| ids.iter().flat_map(|id| id.to_be_bytes()).collect::<Vec<_>>();
    desk.write("a", bytes(&[id(1, 2, 3), id(2, 2, 3), id(1, 2, 3)]));
    let told = desk.audit(&["a", "--binary"]);
    assert!(told.stdout.contains("was in a:1\n") && told.code == Some(1), "{}", told.stdout);
    desk.write("a", [bytes(&[id(1, 2, 3)]), vec![0; 5]].concat());
    let told = desk.audit(&["a", "--binary"]);
    assert!(told.stderr.contains("error: a:2: ") && told.code == Some(2), "{}", told.stderr);
}

#[test]
fn what_is_no_file_is_told_to_be_none() {
    let desk = Desk::new();
    let told = desk.audit(&["http://user:canary@127.0.0.1:7780"]);
    assert_eq!(told.code, Some(2));
    assert!(
        told.stderr.contains("reads files") && !told.stderr.contains("canary"),
        "{}",
        told.stderr
    );
    assert_eq!(desk.audit(&["-", "-"]).code, Some(2));
    assert_eq!(desk.audit(&[""; 0]).code, Some(2));
    assert_eq!(desk.audit(&["a", "--layout", "nonsense"]).code, Some(2));
}

#[test]
fn a_file_that_is_given_twice_is_no_file_of_duplicates() {
    let desk = Desk::new();
    desk.write("a", lines([1, 2]));
    desk.write("b", lines([3]));
    symlink("a", desk.file("link")).unwrap();
    std::fs::hard_link(desk.file("a"), desk.file("hard")).unwrap();
    for (one, other) in [("a", "a"), ("a", "./a"), ("a", "link"), ("hard", "a"), ("link", "hard")] {
        let told = desk.audit(&[one, "b", other]);
        let said = format!("error: {one} and {other} are the same file");
        assert_eq!((told.code, told.stdout.as_str()), (Some(2), ""), "{one} {other}");
        assert!(told.stderr.starts_with(&said), "{}", told.stderr);
    }
    // The control: a copy is another file, and has duplicates.
    std::fs::copy(desk.file("a"), desk.file("copy")).unwrap();
    let told = desk.audit(&["a", "copy"]);
    assert!(told.code == Some(1) && told.stdout.contains("\nduplicates 2\n"), "{}", told.stdout);
    // Nor do things that are no files have anything twice.
    assert_eq!(desk.audit(&["/dev/null", "/dev/null", "a"]).code, Some(0));
}

#[test]
fn a_file_on_stdin_is_known_by_its_name_too() {
    let desk = Desk::new();
    desk.write("a", lines([1, 2]));
    let run = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_frazil"));
        let stdin = std::fs::File::open(desk.file("a")).unwrap();
        command.arg("audit").args(args).current_dir(desk.file(".")).stdin(Stdio::from(stdin));
        command.output().unwrap()
    };
    let twice = run(&["a", "-"]);
    let said = String::from_utf8(twice.stderr).unwrap();
    assert_eq!(twice.status.code(), Some(2), "{said}");
    assert!(said.contains("a and stdin are the same file"), "{said}");
    assert_eq!(run(&["-"]).status.code(), Some(0), "the control");
}

#[test]
fn names_need_not_be_utf_8() {
    let desk = Desk::new();
    let (odd, other) = (OsStr::from_bytes(b"ids-\xff\x1b"), OsStr::from_bytes(b"ids-\xfe"));
    std::fs::write(desk.file(".").join(odd), lines([1, 2])).unwrap();
    std::fs::write(desk.file(".").join(other), lines([2])).unwrap();
    let told = desk.audit(&[odd, other]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(1), ""));
    let line = "duplicate: ids-\\xfe:1: ID 2 was in ids-\\xff\\u{1b}:2";
    assert!(told.stdout.lines().any(|told| told == line), "{}", told.stdout);
    let told = desk.audit(&[odd, other, OsStr::new("--json")]);
    let found = &objects(&told.stdout)[0];
    assert_eq!(found["first"]["file"], "ids-\\xff\u{1b}");
    assert_eq!(found["again"]["file"], "ids-\\xfe");
}

#[test]
fn what_editors_write_before_and_after_lines_is_no_part_of_them() {
    let desk = Desk::new();
    desk.write("a", b"\xef\xbb\xbf17\r\n18\r\n");
    let told = desk.audit(&["a"]);
    assert_eq!((told.code, told.stderr.as_str()), (Some(0), ""));
    assert!(told.stdout.starts_with("checked    2 IDs in 1 file\n"), "{}", told.stdout);
    // The control: the same bytes elsewhere are no ID, and in binary files they are one.
    desk.write("a", b"17\n\xef\xbb\xbf18\n");
    assert_eq!(desk.audit(&["a"]).code, Some(2));
    desk.write("a", b"\x00\xbb\xbf45678\xef\xbb\xbf45678");
    assert!(desk.audit(&["--binary", "a"]).stdout.contains("checked    2 IDs"));
}
