//! The life of a lease in the log, and what happens to the clock.

use std::fs::Permissions;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use frazil_rig::FalseClock;

use crate::desk::Desk;
use crate::logged::Logged;

const LEASE: [&str; 6] = ["--ttl", "2s", "--heartbeat", "200ms", "--outage-budget", "10s"];
const PORTS: [&str; 6] = ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off"];

fn store(desk: &Desk) -> String {
    format!("file:{}", desk.home().join("store").display())
}

fn serve(desk: &Desk, args: &[&str]) -> Logged {
    let store = store(desk);
    let base = ["serve", "--store", &store, "--drain-delay", "0s"];
    Logged::start(desk.command(&[&base[..], &PORTS, &LEASE, args].concat()))
}

/// The value of a field of a line.
fn field<'a>(line: &'a str, name: &str) -> &'a str {
    let named = format!("{name}=");
    let found = line.split(' ').find_map(|part| part.strip_prefix(named.as_str()));
    found.unwrap_or_else(|| panic!("no {name} in {line}"))
}

/// Worker and token; that floor and horizon are there as well.
fn tenure(line: &str) -> (u32, u64) {
    let horizon: u64 = field(line, "horizon").parse().unwrap();
    assert!(field(line, "floor").parse::<u64>().unwrap() < horizon, "{line}");
    let worker = field(line, "worker").parse().unwrap();
    (worker, field(line, "token").parse().unwrap())
}

#[test]
fn a_lease_is_logged_when_it_begins_moves_is_lost_and_ends() {
    let desk = Desk::new();
    let (keys, key) = (desk.home().join("keys.toml"), desk.home().join("ops.key"));
    let (keys, key) = (keys.to_str().unwrap(), key.to_str().unwrap());
    let made = desk.data(&["key", "new", "--name", "ops", "--role", "admin", "--file", keys]);
    std::fs::write(key, made).unwrap();
    std::fs::set_permissions(key, Permissions::from_mode(0o600)).unwrap();
    let mut served = serve(&desk, &["--keys", keys]);
    let leased = served.wait_for("is leased", 1);
    assert!(leased.contains(" INFO frazil_coord::keeper"), "{leased}");
    let first = tenure(&leased);
    let ready = served.wait_for("ready; try: curl", 1);
    let url = ready.split(' ').find(|part| part.starts_with("http://")).unwrap();
    let url = url.split('/').take(3).collect::<Vec<_>>().join("/");
    let moved = desk.output(&["workers", "rotate", "--server", &url, "--key-file", key]);
    assert!(moved.status.success(), "{moved:?}");
    let rotated = served.wait_for("rotated to worker", 1);
    let second = tenure(&rotated);
    assert_eq!(field(&rotated, "from"), first.0.to_string());
    assert_eq!(tenure(&served.wait_for("is leased", 2)), second);
    assert_eq!(tenure(&served.wait_for("is released worker=", 1)), first);
    let record = desk.home().join(format!("store/default/w/{}", second.0));
    std::fs::remove_file(record).unwrap();
    let lost = served.wait_for("a lease was lost", 1);
    assert!(lost.contains(" WARN ") && lost.contains("forgotten"), "{lost}");
    assert_eq!(tenure(&lost), second);
    served.wait_for("quarantine, at ", 1);
    let third = tenure(&served.wait_for("is leased", 3));
    assert_eq!(served.stop().code(), Some(0));
    let released = served.wait_for("is released worker=", 2);
    assert_eq!(tenure(&released), third);
}

#[test]
fn what_a_start_waits_for_is_logged_at_once_and_again() {
    let desk = Desk::new();
    let store = store(&desk);
    desk.data(&["store", "init", "--store", &store, "--workers", "3-3"]);
    let next = ["next", "-n", "10000000000", "--store", &store];
    let mut holder = desk.command(&next).spawn().unwrap();
    holder.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
    let served = serve(&desk, &[]);
    let line = served.wait_for("waiting for a worker", 2);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(line.contains(" INFO frazil_coord::keeper"), "{line}");
    assert!(line.contains("all 1 are held or blocked (1 held, 0 blocked, 0 poisoned)"), "{line}");
    // Once its holder is gone it is blocked up to the horizon, and that is known.
    served.wait_for("(0 held, 1 blocked, 0 poisoned); the first blocked one frees at ", 1);
    assert!(served.count("waiting for a worker") < 20, "not with every look");
}

#[test]
fn a_clock_that_jumps_and_steps_back_is_logged_by_what_that_means() {
    let (desk, clock) = (Desk::new(), FalseClock::new().unwrap());
    let store = store(&desk);
    let args = [&["serve", "--store", &store][..], &PORTS, &LEASE].concat();
    let mut command = desk.command(&args);
    let served = Logged::start({
        command.envs(clock.environment());
        command
    });
    served.wait_for("is leased", 1);
    clock.set_ahead(Duration::from_secs(3600)).unwrap();
    let line = served.wait_for("clock jumped ahead by", 1);
    assert!(line.contains(" WARN frazil::clock"), "{line}");
    clock.set_right().unwrap();
    let line = served.wait_for("clock stepped back by", 1);
    assert!(line.contains(" ERROR frazil::clock"), "{line}");
    assert_eq!((served.count("jumped ahead"), served.count("stepped back")), (1, 1));
}

#[test]
fn a_second_namespace_with_the_same_ids_is_warned_of_once() {
    let desk = Desk::new();
    let store = store(&desk);
    desk.data(&["store", "init", "--store", &store, "--namespace", "second"]);
    let served = serve(&desk, &[]);
    let line = served.wait_for("both namespaces issue the same IDs", 1);
    assert!(line.contains(" WARN ") && line.contains("\"second\""), "{line}");
    served.wait_for("ready; try: curl", 1);
    assert_eq!(served.count("both namespaces"), 1);
}
