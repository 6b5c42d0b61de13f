//! No secret is ever printed, whatever goes wrong.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::process::Output;

use frazil_rig::{AppendOnly, Redis};

use super::examination::Examination;
use crate::shell::Shell;

const CANARY: &str = "canary5ecret";
const OFF: [&str; 6] = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"];

fn assert_silent(output: &Output) {
    for stream in [&output.stdout, &output.stderr] {
        let text = str::from_utf8(stream).unwrap();
        assert!(!text.contains(CANARY), "{text}");
    }
}

#[test]
fn a_password_in_the_url_is_warned_of_and_never_shown() {
    let shell = Shell::new();
    let builder = Redis::builder().password(CANARY).persistent(AppendOnly::Always);
    let redis = builder.start().unwrap();
    let other = Redis::builder().password("another").start().unwrap();
    let right = format!("redis://:{CANARY}@{}", redis.address());
    let urls = [
        right.clone(),
        // The wrong password, the password for a user, nobody there, not a URL at all.
        format!("redis://:{CANARY}@{}", other.address()),
        format!("redis://{CANARY}@{}", redis.address()),
        format!("redis://:{CANARY}@127.0.0.1:1"),
        format!("etcd://app:{CANARY}@127.0.0.1:1"),
        format!("zk://app:{CANARY}@127.0.0.1:1"),
        format!("redis://:{CANARY}?@127.0.0.1:1"),
        format!("redis:{CANARY}"),
        format!("{CANARY}://127.0.0.1"),
    ];
    for (index, url) in urls.iter().enumerate() {
        for form in [&["doctor"][..], &["doctor", "--json"]] {
            let by_flag = shell.output(&[form, &OFF, &["--store", url]].concat());
            let by_variable =
                shell.command(&[form, &OFF].concat()).env("FRAZIL_STORE", url).output().unwrap();
            for output in [by_flag, by_variable] {
                assert_silent(&output);
                assert_eq!(output.status.code(), Some(i32::from(index != 0)), "{url}: {output:?}");
            }
        }
    }
    let found = Examination::of(&shell, &["--store", &right]);
    found.warn("login", "the URL has a password", "password_file=");
    found.warn("login", "the URL has a password", "FRAZIL_STORE_PASSWORD");
    let server = format!("http://me:{CANARY}@127.0.0.1:1");
    let output = shell.output(&[&["doctor"][..], &OFF, &["--server", &server]].concat());
    assert_silent(&output);
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_password_file_is_well_if_nobody_else_can_read_it() {
    let shell = Shell::new();
    let builder = Redis::builder().password(CANARY).persistent(AppendOnly::Always);
    let redis = builder.start().unwrap();
    let file = shell.home().join("password");
    fs::write(&file, CANARY).unwrap();
    let url = format!("{}?password_file={}", redis.url(), file.display());
    fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
    let found = Examination::of(&shell, &["--store", &url]);
    found.warn("login", "others than its owner", &format!("chmod 600 {}", file.display()));
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let found = Examination::of(&shell, &["--store", &url]);
    found.ok("login", "with a password and no user");
    assert_eq!(found.code, Some(0));
    assert_silent(&shell.output(&[&["doctor"][..], &OFF, &["--store", &url]].concat()));
}
