//! What `frazil serve` would run with is what is examined: the file, the environment and the flags,
//! and the files that they name.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use frazil_rig::Certificates;

use super::durable;
use super::examination::Examination;
use crate::logged::Logged;
use crate::shell::Shell;

fn write(shell: &Shell, name: &str, text: &str) -> PathBuf {
    let path = shell.home().join(name);
    fs::write(&path, text).unwrap();
    path
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Makes a key in the file, and gives its text.
fn new_key(shell: &Shell, file: &Path, more: &[&str]) -> String {
    let args = ["key", "new", "--name", "orders", "--role", "ids,read", "--file"];
    let file = file.to_str().unwrap();
    shell.data(&[&args[..], &[file], more].concat()).trim().to_owned()
}

#[test]
fn a_file_that_names_redis_keys_and_certificates_is_followed() {
    let (shell, redis) = (Shell::new(), durable());
    let certificates = Certificates::generate().unwrap();
    let keys = shell.home().join("keys.toml");
    new_key(&shell, &keys, &[]);
    let text = format!(
        "[listen]\nhttp = \"off\"\ngrpc = \"off\"\nresp = \"0.0.0.0:0\"\n\
         [auth]\nkeys = {keys:?}\n\
         [tls]\ncert = {:?}\nkey = {:?}\nclient_ca = {:?}\n\
         [store]\nurl = \"{}\"\nnamespace = \"orders\"\n\
         [lease]\nttl = \"60s\"\n[limits]\nmax_connections = 100\n",
        certificates.server_cert(),
        certificates.server_key(),
        certificates.ca(),
        redis.url(),
    );
    set_mode(certificates.server_key(), 0o600);
    let config = write(&shell, "frazil.toml", &text);
    let config = config.to_str().unwrap();
    let found = Examination::exactly(&shell, &["--config", config]);
    assert_eq!(found.code, Some(0), "{found:?}");
    found.ok("configuration", "frazil.toml was read");
    found.ok("timing", "TTL 1m");
    found.ok("store", &redis.url());
    found.ok("namespace", "\"orders\" is not there yet");
    found.ok("files", "keys.toml: 1 API key");
    found.ok("files", "and its private key can be used");
    found.warn("files", "server.pem is valid until", "get a new one");
    found.warn("files", "ca.pem is valid until", "get a new one");
    found.skipped("http", "off");
    found.ok("resp", "a free port of 0.0.0.0");
    found.ok("descriptors", "684 are needed");
    // A flag counts for more than the environment, and that for more than the file.
    let variables = [("FRAZIL_CONFIG", config), ("FRAZIL_TTL", "45s")];
    let found = Examination::with(&shell, &["--namespace", "bills"], &variables);
    found.ok("timing", "TTL 45s");
    found.ok("namespace", "\"bills\" is not there yet");
    assert_eq!(redis.cli(&["DBSIZE"]).unwrap(), "0\n");
}

#[test]
fn files_that_others_can_read_or_that_do_not_go_together_are_told_with_the_fix() {
    let shell = Shell::new();
    let certificates = Certificates::generate().unwrap();
    let (cert, key) = (certificates.server_cert(), certificates.server_key());
    let keys = shell.home().join("keys.toml");
    new_key(&shell, &keys, &[]);
    let args = |cert: &Path, key: &Path| -> Vec<String> {
        let named = [("--tls-cert", cert), ("--tls-key", key), ("--keys", &keys)];
        named.iter().flat_map(|(flag, path)| [(*flag).into(), path.display().to_string()]).collect()
    };
    let look = |args: Vec<String>| {
        Examination::of(&shell, &args.iter().map(String::as_str).collect::<Vec<_>>())
    };
    for path in [key, &keys] {
        set_mode(path, 0o644);
    }
    let found = look(args(cert, key));
    for path in [key, &keys] {
        let fix = format!("chmod 600 {}", path.display());
        found.warn("files", "can be read or changed by every user", &fix);
        set_mode(path, 0o600);
    }
    assert_eq!(found.code, Some(0));
    let whole = look(args(cert, key));
    assert!(!whole.details("files").join("\n").contains("can be read or changed"), "{whole:?}");
    let found = look(args(cert, certificates.client_key()));
    found.fail("files", "do not go together", "--tls-key");
    // The private key in place of the certificate, and of the keys.
    found.ok("files", "1 API key");
    let swapped = look(args(key, cert));
    swapped.fail("files", "cannot be read", "as PEM");
    let pem = fs::read_to_string(key).unwrap();
    fs::write(&keys, &pem).unwrap();
    let spoilt = look(args(cert, key));
    spoilt.fail("files", "keys.toml:1: ", "frazil key new");
    let secret = pem.lines().nth(1).unwrap();
    assert!(![found, swapped, spoilt].iter().any(|found| format!("{found:?}").contains(secret)));
    let gone = look(args(Path::new("/nowhere/cert.pem"), key));
    gone.fail("configuration", "/nowhere/cert.pem cannot be used", "correct --tls-cert");
    gone.skipped("files", "see configuration");
}

#[test]
fn keys_that_have_ended_are_told_with_the_command_that_removes_them() {
    let shell = Shell::new();
    let keys = shell.home().join("keys.toml");
    new_key(&shell, &keys, &["--expires", "2999-01-01T00:00:00Z"]);
    let path = keys.to_str().unwrap();
    let found = Examination::of(&shell, &["--keys", path]);
    assert_eq!(found.details("files").len(), 1, "{found:?}");
    let text = fs::read_to_string(&keys).unwrap().replace("2999-", "2020-");
    fs::write(&keys, &text).unwrap();
    let id = text.split('"').nth(1).unwrap();
    let found = Examination::of(&shell, &["--keys", path]);
    let revoke = format!("frazil key revoke {id} --keys {path}");
    found.warn("files", "ended at 2020-01-01", &revoke);
    assert_eq!(found.code, Some(0));
    shell.data(&revoke.split(' ').skip(1).collect::<Vec<_>>());
    let found = Examination::of(&shell, &["--keys", path]);
    found.warn("files", "has no keys", "frazil key new");
}

#[test]
fn every_problem_of_the_configuration_is_a_row_and_the_rest_is_examined() {
    let shell = Shell::new();
    let text = "[lease]\nttl = \"soon\"\nheartbeat = \"20s\"\n[node]\nlane = 3\n";
    let config = write(&shell, "frazil.toml", text);
    let config = config.to_str().unwrap();
    let look = || Examination::of(&shell, &["--config", config]);
    let found = look();
    found.fail("configuration", "lease.ttl: \"soon\" does not fit", "line 2 of");
    found.fail("configuration", "frazil.toml:5:", "line 5 of");
    found.ok("store", "file:");
    fs::write(config, "[lease]\nheartbeat = \"20s\"\n").unwrap();
    let fix = format!("--heartbeat 10s, or --ttl 1m; or the same in line 2 of {config}");
    look().fail("configuration", "a third of the TTL", &fix);
    // Which namespace is meant is not known.
    fs::write(config, "[store]\nnamespace = \"a b\"\n").unwrap();
    let found = look();
    found.fail("configuration", "store.namespace", "line 2 of");
    found.skipped("namespace", "see configuration");
    // And nothing at all if the file is no TOML, or not there.
    for spoil in [|path: &str| fs::write(path, "[lease\n"), |path: &str| fs::remove_file(path)] {
        spoil(config).unwrap();
        let found = look();
        assert_eq!(found.named("fail"), ["configuration"]);
        for check in ["lifetime", "store", "pool", "files", "http", "descriptors"] {
            found.skipped(check, "the configuration is not known");
        }
    }
    assert_eq!(fs::read_dir(shell.home()).unwrap().count(), 0, "something was created");
}

#[test]
fn listeners_that_others_reach_without_a_guard_fail_or_are_warned_of_if_that_is_meant() {
    let shell = Shell::new();
    let exposed = ["--http", "0.0.0.0:0", "--grpc", "off", "--resp", "off"];
    let found = Examination::exactly(&shell, &exposed);
    found.fail("configuration", "can be reached from other machines", "correct --http");
    let found = Examination::exactly(&shell, &[&exposed[..], &["--insecure"]].concat());
    found.warn("http", "without TLS and without keys", "--http 127.0.0.1:0");
    assert_eq!(found.code, Some(0));
    // Administration is never meant to be open.
    for meant in [&[][..], &["--insecure"]] {
        let found = Examination::of(&shell, &[&["--admin", "0.0.0.0:0"][..], meant].concat());
        found.fail("configuration", "could drain this node", "correct --admin");
    }
    let found = Examination::of(&shell, &["--admin", "127.0.0.1:0", "--insecure"]);
    assert!(!format!("{found:?}").contains("reached from other"), "{found:?}");
    let found = Examination::exactly(&shell, &["--dev", "--max-connections", "9"]);
    found.skipped("store", "a store of its own");
    assert_eq!(found.code, Some(0));
}

#[test]
fn a_server_with_tls_and_keys_is_examined_and_its_ports_are_no_strangers() {
    let shell = Shell::new();
    let certificates = Certificates::generate().unwrap();
    let keys = shell.home().join("keys.toml");
    let key = write(&shell, "orders.key", &new_key(&shell, &keys, &[]));
    let shown = |path: &Path| path.display().to_string();
    let (cert, secret) = (shown(certificates.server_cert()), shown(certificates.server_key()));
    let guarded = ["--tls-cert", &cert, "--tls-key", &secret, "--keys", keys.to_str().unwrap()];
    let served = Logged::start(shell.command(&[&["serve", "--dev"][..], &guarded].concat()));
    let address = |line: &str| {
        let line = served.wait_for(line, 1);
        line.rsplit(['/', ' ']).next().unwrap().to_owned()
    };
    let (http, grpc, resp) = (address("  HTTP  "), address("  gRPC  "), address("  RESP  "));
    served.wait_for("ready; try", 1);
    let url = format!("https://{http}");
    let ca = shown(certificates.ca());
    let asked = ["--server", &url, "--ca", &ca];
    let found = Examination::of(&shell, &asked);
    found.ok("server", "is ready");
    found.skipped("server", "--key-file");
    let known = Examination::of(&shell, &[&asked[..], &["--key-file", &shown(&key)]].concat());
    known.ok("server", "is ready");
    assert!(!known.named("skipped").contains(&"server"), "{known:?}");
    let variables = [("FRAZIL_SERVER", url.as_str()), ("FRAZIL_CA", ca.as_str())];
    Examination::with(&shell, &[], &variables).ok("server", "is ready");
    let strange = Examination::of(&shell, &["--server", &url]);
    strange.fail("server", "do not trust each other", "--server");
    let plain = Examination::of(&shell, &["--server", &format!("http://{http}")]);
    plain.fail("server", "with 400", "https://");
    let ports = ["--http", &http, "--grpc", &grpc, "--resp", &resp, "--max-connections", "9"];
    let found = Examination::exactly(&shell, &ports);
    found.ok("http", "a frazil server that wants a key, by TLS");
    found.ok("grpc", "frazil server, process");
    found.ok("resp", "frazil server, process");
}

#[test]
fn somebody_else_with_tls_is_said_to_speak_it() {
    let shell = Shell::new();
    let certificates = Certificates::generate().unwrap();
    let redis = frazil_rig::Redis::builder().tls(&certificates).start().unwrap();
    let found = Examination::of(&shell, &["--admin", &redis.address()]);
    found.fail("admin", "which speaks TLS and may be a frazil server", "--admin with another port");
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let found = Examination::of(&shell, &["--admin", &address]);
    found.fail("admin", "is in use by", "--admin with another port");
    assert!(!found.details("admin").join("\n").contains("TLS"), "{found:?}");
}

#[test]
fn strict_scopes_with_keys_are_warned_of_without_an_authority_or_the_role_peer() {
    let shell = Shell::new();
    let (keys, peer_key) = (shell.home().join("keys.toml"), shell.home().join("peer.key"));
    let store = format!("file:{}", shell.home().join("store").display());
    let key = new_key(&shell, &keys, &[]);
    fs::write(&peer_key, key).unwrap();
    let flags = ["--keys", keys.to_str().unwrap(), "--peer-key-file", peer_key.to_str().unwrap()];
    let flags = [&["--store", &store, "--scope", "orders=strict"][..], &flags].concat();
    let found = Examination::of(&shell, &flags);
    found.warn("files", "strict scopes are forwarded without TLS", "--peer-ca");
    found.warn("files", "does not have the role peer", "--role peer");
    let args = ["key", "new", "--name", "nodes", "--role", "peer", "--file"];
    let nodes = shell.data(&[&args[..], &[keys.to_str().unwrap()]].concat());
    fs::write(&peer_key, nodes).unwrap();
    let found = Examination::of(&shell, &flags);
    assert!(!format!("{found:?}").contains("role peer"), "{found:?}");
}
