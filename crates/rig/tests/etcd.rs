//! etcd starts for real, and its controls act.

use std::process::Command;

use frazil_rig::{Certificates, Etcd, EtcdCluster};

#[test]
fn a_single_member_keeps_its_data_over_a_kill() {
    let etcd = Etcd::start().unwrap();
    etcd.etcdctl(&["put", "k", "v"]).unwrap();
    etcd.kill();
    etcd.restart().unwrap();
    assert_eq!(etcd.etcdctl(&["get", "k", "--print-value-only"]).unwrap(), "v\n");
    assert_eq!(etcd.url(), format!("etcd://127.0.0.1:{}", etcd.port()));
}

#[test]
fn a_paused_member_answers_after_resume() {
    let etcd = Etcd::start().unwrap();
    etcd.pause().unwrap();
    let get = ["get", "k", "--command-timeout=300ms", "--dial-timeout=300ms"];
    etcd.etcdctl(&get).unwrap_err();
    etcd.resume().unwrap();
    etcd.wait_ready().unwrap();
    etcd.etcdctl(&get).unwrap();
}

#[test]
fn a_restored_snapshot_has_the_old_data_on_the_same_port() {
    let etcd = Etcd::start().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let snapshot = directory.path().join("snapshot");
    etcd.etcdctl(&["put", "k", "old"]).unwrap();
    etcd.save_snapshot(&snapshot).unwrap();
    etcd.etcdctl(&["put", "k", "new"]).unwrap();
    let port = etcd.port();
    etcd.restore_from(&snapshot).unwrap();
    assert_eq!(etcd.port(), port);
    assert_eq!(etcd.etcdctl(&["get", "k", "--print-value-only"]).unwrap(), "old\n");
}

#[test]
fn authentication_lets_in_only_the_user() {
    let etcd = Etcd::builder().with_auth("frazil", "secret").start().unwrap();
    etcd.etcdctl(&["put", "k", "v"]).unwrap();
    let mut stranger = etcdctl(&format!("http://{}", etcd.address()));
    let output = stranger.args(["get", "k"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("user name is empty"), "{output:?}");
    etcd.restart().unwrap();
    assert_eq!(etcd.etcdctl(&["get", "k", "--print-value-only"]).unwrap(), "v\n");
}

#[test]
fn tls_answers_the_right_ca_and_rejects_the_other() {
    let certificates = Certificates::generate().unwrap();
    let etcd = Etcd::builder().tls(&certificates).start().unwrap();
    etcd.etcdctl(&["put", "k", "v"]).unwrap();
    let mut stranger = etcdctl(&format!("https://{}", etcd.address()));
    let output = stranger.arg("--cacert").arg(certificates.other_ca()).args(["get", "k"]);
    assert!(!output.output().unwrap().status.success());
}

#[test]
fn mutual_tls_turns_away_a_client_without_a_certificate() {
    let certificates = Certificates::generate().unwrap();
    let etcd = Etcd::builder().mutual_tls(&certificates).start().unwrap();
    etcd.etcdctl(&["put", "k", "v"]).unwrap();
    let mut stranger = etcdctl(&format!("https://{}", etcd.address()));
    let output = stranger.arg("--cacert").arg(certificates.ca()).args(["get", "k"]);
    assert!(!output.output().unwrap().status.success());
}

#[test]
fn a_killed_leader_is_replaced_and_comes_back() {
    let cluster = EtcdCluster::start(3).unwrap();
    assert_eq!(cluster.url().matches("127.0.0.1").count(), 3);
    cluster.etcdctl(&["put", "k", "v"]).unwrap();
    let old = cluster.kill_leader().unwrap();
    let new = cluster.leader_index().unwrap();
    assert_ne!(new, old);
    assert_eq!(cluster.etcdctl(&["get", "k", "--print-value-only"]).unwrap(), "v\n");
    cluster.node(old).restart().unwrap();
    cluster.node(old).etcdctl(&["put", "k", "w"]).unwrap();
}

/// `etcdctl` as someone else would call it.
fn etcdctl(endpoint: &str) -> Command {
    let mut command = Command::new("etcdctl");
    command.env("ETCDCTL_API", "3").args(["--endpoints", endpoint]);
    command.args(["--command-timeout=1s", "--dial-timeout=1s"]);
    command
}
