//! ZooKeeper starts for real, and its controls act.

use std::path::Path;
use std::process::{Command, Stdio};

use frazil_rig::{Certificates, ZooKeeper, ZooKeeperEnsemble};

#[test]
fn a_single_server_can_be_paused_and_restarted() {
    let zookeeper = ZooKeeper::start().unwrap();
    assert_eq!(zookeeper.mode().unwrap(), "standalone");
    assert_eq!(zookeeper.url(), format!("zk://127.0.0.1:{}", zookeeper.port()));
    zookeeper.pause().unwrap();
    zookeeper.four_letter_word("ruok").unwrap_err();
    zookeeper.resume().unwrap();
    assert_eq!(zookeeper.four_letter_word("ruok").unwrap(), "imok");
    let before = zookeeper.id();
    zookeeper.restart().unwrap();
    assert_ne!(zookeeper.id(), before);
}

#[test]
fn short_sessions_are_allowed() {
    let zookeeper = ZooKeeper::start().unwrap();
    let conf = zookeeper.four_letter_word("conf").unwrap();
    assert!(conf.contains("minSessionTimeout=1000\n"), "{conf}");
    assert!(conf.contains("maxSessionTimeout=60000\n"), "{conf}");
}

#[test]
fn a_killed_leader_is_replaced_and_comes_back() {
    let ensemble = ZooKeeperEnsemble::start(3).unwrap();
    assert_eq!(ensemble.url().matches("127.0.0.1").count(), 3);
    let old = ensemble.kill_leader().unwrap();
    let new = ensemble.leader_index().unwrap();
    assert_ne!(new, old);
    ensemble.node(old).restart().unwrap();
    assert_eq!(ensemble.node(old).mode().unwrap(), "follower");
}

#[test]
fn tls_shows_a_certificate_of_the_ca_and_not_of_the_other() {
    let certificates = Certificates::generate().unwrap();
    let zookeeper = ZooKeeper::builder().tls(&certificates).start().unwrap();
    assert!(handshake(&zookeeper, certificates.ca(), None));
    assert!(!handshake(&zookeeper, certificates.other_ca(), None));
}

#[test]
fn mutual_tls_turns_away_a_client_without_a_certificate() {
    let certificates = Certificates::generate().unwrap();
    let zookeeper = ZooKeeper::builder().mutual_tls(&certificates).start().unwrap();
    assert!(handshake(&zookeeper, certificates.ca(), Some(&certificates)));
    assert!(!handshake(&zookeeper, certificates.ca(), None));
}

/// Whether `openssl` agrees with the server on TLS 1.2, in which a client without a certificate
/// learns of its refusal within the handshake.
fn handshake(zookeeper: &ZooKeeper, ca: &Path, client: Option<&Certificates>) -> bool {
    let mut command = Command::new("openssl");
    command.args(["s_client", "-tls1_2", "-verify_return_error", "-verify_ip", "127.0.0.1"]);
    command.args(["-connect", &zookeeper.address(), "-CAfile"]).arg(ca);
    if let Some(certificates) = client {
        command.arg("-cert").arg(certificates.client_cert());
        command.arg("-key").arg(certificates.client_key());
    }
    command.stdin(Stdio::null()).output().unwrap().status.success()
}
