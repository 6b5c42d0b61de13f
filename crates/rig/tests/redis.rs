//! Redis starts for real, and its controls act.

use std::io::{self, BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use frazil_rig::{AppendOnly, Certificates, FalseClock, Redis, RedisCluster, Sentinels};

/// Long enough for a server that answers, short enough for one that does not.
const SILENCE: Duration = Duration::from_millis(200);

#[test]
fn a_paused_server_is_silent_and_answers_after_resume() {
    let redis = Redis::start().unwrap();
    let mut stream = BufReader::new(TcpStream::connect(redis.address()).unwrap());
    stream.get_ref().set_read_timeout(Some(SILENCE)).unwrap();
    redis.pause().unwrap();
    stream.get_mut().write_all(b"PING\r\n").unwrap();
    let mut line = String::new();
    let error = stream.read_line(&mut line).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    redis.resume().unwrap();
    stream.get_ref().set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    stream.read_line(&mut line).unwrap();
    assert_eq!(line, "+PONG\r\n");
}

#[test]
fn a_server_goes_by_a_clock_that_is_set() {
    let clock = FalseClock::new().unwrap();
    let redis = Redis::builder().clock(&clock).start().unwrap();
    let seconds = || {
        let time = redis.cli(&["TIME"]).unwrap();
        time.lines().next().unwrap().parse::<i64>().unwrap()
    };
    let before = seconds();
    clock.set_ahead(Duration::from_secs(3600)).unwrap();
    assert!((3600..3660).contains(&(seconds() - before)), "{before} {}", seconds());
    clock.set_back(Duration::from_secs(3600)).unwrap();
    assert!((-3600..-3540).contains(&(seconds() - before)), "{before} {}", seconds());
}

#[test]
fn a_server_without_persistence_forgets_in_a_restart_on_the_same_port() {
    let redis = Redis::start().unwrap();
    let before = redis.id().unwrap();
    redis.cli(&["SET", "k", "v"]).unwrap();
    redis.kill();
    assert_eq!(redis.id(), None);
    assert!(TcpStream::connect(redis.address()).is_err());
    redis.restart().unwrap();
    assert_ne!(redis.id(), Some(before));
    assert_eq!(redis.cli(&["GET", "k"]).unwrap(), "\n");
}

#[test]
fn an_append_only_file_outlives_a_kill() {
    let redis = Redis::builder().persistent(AppendOnly::Always).start().unwrap();
    redis.cli(&["SET", "k", "v"]).unwrap();
    redis.kill();
    redis.restart().unwrap();
    assert_eq!(redis.cli(&["GET", "k"]).unwrap(), "v\n");
}

#[test]
fn lines_and_a_password_reach_the_configuration() {
    let builder = Redis::builder().line("maxmemory-policy allkeys-lru").password("secret");
    let redis = builder.start().unwrap();
    let policy = redis.cli(&["CONFIG", "GET", "maxmemory-policy"]).unwrap();
    assert_eq!(policy, "maxmemory-policy\nallkeys-lru\n");
    let port = redis.port().to_string();
    let output = Command::new("redis-cli").args(["-p", &port, "PING"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("NOAUTH"), "{output:?}");
}

#[test]
fn a_wrong_configuration_is_an_error_with_the_log() {
    let error = Redis::builder().line("no-such-setting 1").start().unwrap_err();
    assert!(error.to_string().contains("no-such-setting"), "{error}");
}

#[test]
fn a_dropped_server_is_gone_even_if_paused() {
    let redis = Redis::start().unwrap();
    let entry = format!("/proc/{}", redis.id().unwrap());
    let directory = redis.directory().to_owned();
    redis.pause().unwrap();
    drop(redis);
    assert!(!std::path::Path::new(&entry).exists());
    assert!(!directory.exists());
}

#[test]
fn tls_answers_the_right_ca_and_rejects_the_other() {
    let certificates = Certificates::generate().unwrap();
    let redis = Redis::builder().tls(&certificates).start().unwrap();
    assert_eq!(redis.url(), format!("rediss://{}", redis.address()));
    assert_eq!(redis.cli(&["PING"]).unwrap(), "PONG\n");
    let ping = |ca: &std::path::Path| {
        let port = redis.port().to_string();
        let mut cli = Command::new("redis-cli");
        cli.args(["-p", &port, "--tls", "--cacert"]).arg(ca).arg("PING").output().unwrap()
    };
    assert_eq!(ping(certificates.ca()).stdout, b"PONG\n");
    let refused = ping(certificates.other_ca());
    assert!(!refused.status.success(), "{refused:?}");
    let message = String::from_utf8_lossy(&refused.stderr);
    assert!(message.contains("certificate verify failed"), "{message}");
}

#[test]
fn sentinels_promote_the_replica_of_a_killed_master() {
    let master = Redis::start().unwrap();
    let replica = Redis::builder().replica_of(&master).start().unwrap();
    let sentinels = Sentinels::start(&master).unwrap();
    assert_eq!(sentinels.master_port().unwrap(), master.port());
    assert_eq!(sentinels.url().matches("127.0.0.1").count(), 3);
    assert!(sentinels.url().ends_with("/frazil"));
    master.kill();
    assert_eq!(sentinels.wait_for_failover(master.port()).unwrap(), replica.port());
    assert_eq!(replica.info("role").unwrap(), "master");
}

#[test]
fn a_cluster_shares_its_slots_and_replaces_a_master() {
    let cluster = RedisCluster::with_replicas(3, 1).unwrap();
    assert_eq!(cluster.nodes().len(), 6);
    let owner = cluster.master_of("some-key").unwrap();
    assert!(owner < 3);
    cluster.node(owner).cli(&["SET", "some-key", "v"]).unwrap();
    let other = cluster.node((owner + 1) % 3).cli(&["GET", "some-key"]).unwrap();
    assert!(other.contains("MOVED"), "{other}");
    let limit = Duration::from_secs(20);
    let promoted = owner + 3;
    let offset = |node: usize, field: &str| -> Option<u64> {
        cluster.node(node).info(field).ok()?.parse().ok()
    };
    // WAIT would wait for what its own connection wrote, which is nothing.
    let written = offset(owner, "master_repl_offset").unwrap();
    frazil_rig::wait_until("the replica to have the value", limit, || {
        offset(promoted, "slave_repl_offset").is_some_and(|read| read >= written)
    })
    .unwrap();
    cluster.node(owner).kill();
    frazil_rig::wait_until("the replica to take over", limit, || {
        cluster.master_of("some-key").is_ok_and(|index| index == promoted)
    })
    .unwrap();
    assert_eq!(cluster.node(promoted).cli(&["GET", "some-key"]).unwrap(), "v\n");
}

#[test]
fn a_cluster_without_replicas_is_whole_and_names_all_nodes() {
    let cluster = RedisCluster::start(3).unwrap();
    assert!(cluster.url().starts_with("redis+cluster://127.0.0.1:"));
    assert_eq!(cluster.url().matches("127.0.0.1").count(), 3);
}
