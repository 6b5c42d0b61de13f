//! Who a client is, over every protocol: its address behind proxies, its certificate, its key, and
//! what is written down and counted of it.

mod client;
mod seen;

use std::net::SocketAddr;
use std::time::Duration;

use frazil_rig::Certificates;
use frazil_server::TlsFiles;
use frazil_server::keys::{KeyEntry, Role};

use self::client::{ALL, Client, Protocol, local, spoken_for};
use self::seen::seen;
use crate::site::Site;
use crate::site::secured::Keys;

const OK: &str = "OK";
const UNAUTHENTICATED: &str = "UNAUTHENTICATED";
const FORBIDDEN: &str = "FORBIDDEN";
const TOO_MANY: &str = "TOO_MANY_ATTEMPTS";

/// Longer than any pause.
const LONG: Duration = Duration::from_secs(150);

/// A site that believes 127.0.0.1, or somebody else.
async fn behind(proxy: &str, keys: &Keys, change: impl FnOnce(&mut frazil_server::Config)) -> Site {
    seen::begin();
    Site::start_with(|config| {
        config.trusted_proxies = vec![proxy.parse().unwrap()];
        config.keys = Some(keys.path().into());
        config.open_metrics = true;
        config.scopes = vec!["orders".into(), "users".into()];
        change(config);
    })
    .await
}

fn files(certificates: &Certificates) -> Option<TlsFiles> {
    Some(
        TlsFiles::new(certificates.server_cert().to_owned(), certificates.server_key().to_owned())
            .with_client_ca(certificates.ca().to_owned()),
    )
}

#[tokio::test]
async fn a_trusted_proxy_says_whom_a_connection_is_from() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    let reader = keys.add("proxied", Role::Read);
    for tls in [None, files(&certificates)] {
        let site = behind("127.0.0.1/32", &keys, |config| config.tls = tls.clone()).await;
        for protocol in ALL {
            for (begin, expected) in [
                (spoken_for("192.0.2.1"), "192.0.2.1"),
                (spoken_for("2001:db8::1"), "2001:db8::1"),
                (local(), "127.0.0.1"),
                (Vec::new(), "127.0.0.1"),
            ] {
                let client = Client::new(&site).beginning(&begin).key(&reader);
                let client = if tls.is_some() { client.tls(&certificates) } else { client };
                assert_eq!(client.ask(protocol).await, FORBIDDEN, "{protocol:?} {expected}");
                let line = seen("by", "proxied").pop().unwrap();
                assert_eq!((&*line["peer"], &*line["protocol"]), (expected, protocol.word()));
            }
        }
        site.stop().await.unwrap();
    }
}

#[tokio::test]
async fn nobody_else_is_believed() {
    let mut keys = Keys::new();
    let reader = keys.add("stranger", Role::Read);
    let site = behind("192.0.2.1", &keys, |_| {}).await;
    // The bytes are nothing that the protocol knows.
    let faults = ["INVALID_ARGUMENT", "closed", UNAUTHENTICATED];
    for (protocol, fault) in ALL.into_iter().zip(faults) {
        let forged = Client::new(&site).beginning(&spoken_for("192.0.2.222")).key(&reader);
        assert_eq!(forged.ask(protocol).await, fault, "{protocol:?}");
        assert_eq!(seen("peer", "192.0.2.222").len(), 0, "{protocol:?}");
        let headers = Client::new(&site).key(&reader).header("forwarded", "for=192.0.2.2");
        assert_eq!(headers.ask(protocol).await, FORBIDDEN, "{protocol:?}");
        assert_eq!(seen("by", "stranger").pop().unwrap()["peer"], "127.0.0.1");
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_trusted_proxy_says_whom_a_request_is_from() {
    let mut keys = Keys::new();
    let reader = keys.add("requester", Role::Read);
    let site = behind("127.0.0.0/8", &keys, |_| {}).await;
    for protocol in [Protocol::Http, Protocol::Grpc] {
        for (name, value, expected) in [
            ("forwarded", "for=\"[2001:db8::7]:5\";proto=https", "2001:db8::7"),
            ("forwarded", "for=192.0.2.9, for=127.0.0.7", "192.0.2.9"),
            ("x-forwarded-for", "198.51.100.1, 192.0.2.9", "192.0.2.9"),
            ("forwarded", "for=unknown", "127.0.0.1"),
        ] {
            let client = Client::new(&site).key(&reader).header(name, value);
            assert_eq!(client.ask(protocol).await, FORBIDDEN, "{protocol:?} {value}");
            assert_eq!(seen("by", "requester").pop().unwrap()["peer"], expected, "{value}");
        }
        let client = Client::new(&site).key(&reader).header("forwarded", "for=\"");
        assert_eq!(client.ask(protocol).await, "INVALID_ARGUMENT", "{protocol:?}");
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn connections_through_a_proxy_count_for_their_clients() {
    let mut keys = Keys::new();
    let key = keys.add("counted", Role::Ids);
    let site = behind("127.0.0.1", &keys, |config| {
        config.limits.max_connections_per_peer = 1;
    })
    .await;
    for protocol in ALL {
        let of = |begin: &[u8]| Client::new(&site).beginning(begin).key(&key);
        let one = spoken_for("192.0.2.1");
        let mut first = of(&one).open(protocol).await.unwrap();
        assert_eq!(first.ask().await, OK, "{protocol:?}");
        assert_ne!(of(&one).ask(protocol).await, OK, "{protocol:?}: a second one of a client");
        assert_eq!(of(&spoken_for("192.0.2.2")).ask(protocol).await, OK, "{protocol:?}");
        // The proxy itself may have as many as it likes.
        let mut second = of(&[]).open(protocol).await.unwrap();
        assert_eq!(second.ask().await, OK, "{protocol:?}");
        assert_eq!(of(&[]).ask(protocol).await, OK, "{protocol:?}");
        assert_eq!(first.ask().await, OK, "{protocol:?}");
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_certificate_stands_for_its_key_and_a_key_that_is_shown_wins() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    keys.add_with("certified", Role::Ids, |entry| {
        entry.certificate_subject = Some("CN=client".to_owned());
        entry.scopes = Some(vec!["orders".to_owned()]);
        entry.sha256 = String::new();
    });
    keys.add_with("named", Role::Read, |entry| {
        entry.certificate_san = Some("LOCALHOST".to_owned());
    });
    let all = keys.add("all", Role::Ids);
    let site = behind("192.0.2.1", &keys, |config| config.tls = files(&certificates)).await;
    for protocol in ALL {
        let client = || Client::new(&site).tls(&certificates);
        for (client, expected, who) in [
            (client().scope("orders"), OK, "its scope"),
            (client().scope("users"), FORBIDDEN, "another scope"),
            (client().scope("users").key(&all), OK, "a key that may"),
            (client().scope("orders").key("frz_00000000_1"), UNAUTHENTICATED, "a wrong key"),
            (client().tls_as_server(&certificates), FORBIDDEN, "a reader by its DNS name"),
        ] {
            assert_eq!(client.ask(protocol).await, expected, "{protocol:?}: {who}");
        }
        let line = seen("by", "named").pop().unwrap();
        assert_eq!((&*line["refused"], &*line["protocol"]), ("role", protocol.word()));
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_certificate_that_stands_for_nothing_any_more_opens_nothing() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    let set = |entry: &mut KeyEntry| entry.certificate_subject = Some("CN=client".to_owned());
    keys.add_with("leaving", Role::Ids, set);
    let site = behind("192.0.2.1", &keys, |config| config.tls = files(&certificates)).await;
    let mut open = Vec::new();
    for protocol in ALL {
        let mut connection = Client::new(&site).tls(&certificates).open(protocol).await.unwrap();
        assert_eq!(connection.ask().await, OK, "{protocol:?}");
        open.push(connection);
    }
    keys.revoke("leaving");
    site.reloader.reload().unwrap();
    for connection in &mut open {
        assert_eq!(connection.ask().await, UNAUTHENTICATED, "{connection:?}");
    }
    keys.add_with("expired-certificate", Role::Ids, |entry| {
        set(entry);
        entry.expires = Some("2020-01-01T00:00:00Z".to_owned());
    });
    site.reloader.reload().unwrap();
    for connection in &mut open {
        assert_eq!(connection.ask().await, UNAUTHENTICATED, "{connection:?}");
    }
    assert_eq!(seen("by", "expired-certificate").pop().unwrap()["refused"], "certificate");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_certificate_that_another_key_takes_over_cuts_nobody_off() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    let set = |entry: &mut KeyEntry| entry.certificate_subject = Some("CN=client".to_owned());
    let old = keys.add_with("old", Role::Ids, set);
    let site = behind("192.0.2.1", &keys, |config| config.tls = files(&certificates)).await;
    let mut open = Vec::new();
    for protocol in ALL {
        let client = || Client::new(&site);
        let other = client().tls_as_server(&certificates).key(&old);
        for client in [client().tls(&certificates), other] {
            let mut connection = client.open(protocol).await.unwrap();
            assert_eq!(connection.ask().await, OK, "{protocol:?}");
            open.push(connection);
        }
    }
    // As a rotation with a grace does.
    keys.change("old", |entry| entry.certificate_subject = None);
    keys.add_with("new", Role::Ids, set);
    site.reloader.reload().unwrap();
    for connection in &mut open {
        assert_eq!(connection.ask().await, OK, "{connection:?}");
    }
    keys.revoke("old");
    site.reloader.reload().unwrap();
    for connection in open.iter_mut().step_by(2) {
        assert_eq!(connection.ask().await, OK, "{connection:?}: its certificate is the new key's");
    }
    site.stop().await.unwrap();
}

/// A page in a browser can make it show a certificate, but no key.
#[tokio::test]
async fn a_page_of_another_origin_gets_nothing_by_a_certificate() {
    let certificates = Certificates::generate().unwrap();
    let mut keys = Keys::new();
    keys.add_with("browsing", Role::Ids, |entry| {
        entry.certificate_subject = Some("CN=client".to_owned());
    });
    let site = behind("192.0.2.1", &keys, |config| config.tls = files(&certificates)).await;
    let client = || Client::new(&site).tls(&certificates);
    let foreign = client().header("origin", "https://evil.example");
    assert_eq!(foreign.ask(Protocol::Http).await, FORBIDDEN);
    let foreign = client().header("sec-fetch-site", "cross-site");
    assert_eq!(foreign.ask(Protocol::Http).await, FORBIDDEN);
    assert_eq!(client().header("origin", "https://test").ask(Protocol::Http).await, OK);
    assert_eq!(client().ask(Protocol::Http).await, OK);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn after_a_few_wrong_keys_none_of_that_address_is_looked_at() {
    let mut keys = Keys::new();
    let good = keys.add("patient", Role::Ids);
    let site = behind("127.0.0.1", &keys, |config| config.limits.max_failed_keys = 3).await;
    for (protocol, number) in ALL.into_iter().zip(1..) {
        let (begin, neighbour) = (
            spoken_for(&format!("2001:db8:0:{number}::1")),
            spoken_for(&format!("2001:db8:0:{number}::2")),
        );
        let client = |key: &str, begin: &[u8]| Client::new(&site).beginning(begin).key(key);
        let mut open = client(&good, &begin).open(protocol).await.unwrap();
        assert_eq!(open.ask().await, OK);
        let wrong = "frz_00000000_1";
        let throttled = async {
            let mut wrongs = 0;
            loop {
                while client(wrong, &begin).ask(protocol).await != TOO_MANY {
                    wrongs += 1;
                }
                let mut waits = Vec::new();
                for begin in [&begin, &neighbour] {
                    let mut refused = client(&good, begin).open(protocol).await.unwrap();
                    let told = refused.ask().await;
                    waits.extend(refused.retry_after.filter(|_| told == TOO_MANY));
                }
                // Where this machine is slow the pause may be over; the next is longer.
                if let [first, second] = waits[..] {
                    return (wrongs, first.max(second));
                }
            }
        };
        let throttled = tokio::time::timeout(LONG, throttled).await;
        let (wrongs, wait) = throttled.expect("somebody who tries keys is throttled");
        assert!(wrongs >= 3 && wait <= Duration::from_mins(1), "{protocol:?} {wrongs} {wait:?}");
        assert_eq!(open.ask().await, OK, "{protocol:?}: whoever is in goes on");
        let other = spoken_for(&format!("192.0.2.{number}"));
        assert_eq!(client(&good, &other).ask(protocol).await, OK, "{protocol:?}: somebody else");
        let let_in = async { while client(&good, &begin).ask(protocol).await != OK {} };
        tokio::time::timeout(LONG, let_in).await.expect("the pause ends");
        // A trusted proxy that does not say for whom it asks is many clients.
        for _ in 0..5 {
            assert_eq!(client(wrong, &[]).ask(protocol).await, UNAUTHENTICATED, "{protocol:?}");
        }
        assert_eq!(client(&good, &[]).ask(protocol).await, OK, "{protocol:?}");
    }
    let name = "frazil_key_refused_total{key=\"none\",reason=\"TOO_MANY_ATTEMPTS\"}";
    assert!(site.metric(name).await >= 9.0);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn every_refusal_is_written_down_with_the_clients_address() {
    let mut keys = Keys::new();
    let (ids, reader) = (keys.add("writer", Role::Ids), keys.add("looker", Role::Read));
    let scoped = keys.add_with("scoped", Role::Ids, |entry| {
        entry.scopes = Some(vec!["orders".to_owned()]);
    });
    let expired = keys.add_with("over", Role::Ids, |entry| {
        entry.expires = Some("2020-01-01T00:00:00Z".to_owned());
    });
    let site = behind("127.0.0.1", &keys, |_| {}).await;
    // The public part of a key with another secret.
    let guessed = format!("{}_{}", &ids[..12], "0".repeat(64));
    let strange = "frz_00000000_1";
    for (protocol, number) in ALL.into_iter().zip(1..) {
        for (at, (key, what, by)) in [
            (strange, "key", "?"),
            (guessed.as_str(), "key", "writer"),
            (&expired, "key", "over"),
            (&reader, "role", "looker"),
            (&scoped, "scope", "scoped"),
        ]
        .into_iter()
        .enumerate()
        {
            let peer = format!("198.51.{number}.{at}");
            let client = Client::new(&site).beginning(&spoken_for(&peer)).key(key);
            let refusal = client.scope("users").ask(protocol).await;
            assert!([UNAUTHENTICATED, FORBIDDEN].contains(&&*refusal), "{protocol:?} {what}");
            let lines = seen("peer", &peer);
            assert_eq!(lines.len(), 1, "{protocol:?} {what} {by}: {lines:?}");
            let line = &lines[0];
            assert_eq!((&*line["refused"], &*line["by"]), (what, by), "{protocol:?}");
            assert_eq!(line["protocol"], protocol.word());
            assert_eq!(line["target"], "frazil_server::audit");
            assert!(!format!("{line:?}").contains(key), "{line:?}");
        }
    }
    let peer = "198.51.9.1";
    let client = Client::new(&site).beginning(&spoken_for(peer)).key(&ids).user("somebody");
    assert_eq!(client.ask(Protocol::Resp).await, UNAUTHENTICATED);
    assert_eq!(seen("peer", peer)[0]["refused"], "user");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_request_has_a_name_in_its_failure_and_in_what_administrators_do() {
    let mut keys = Keys::new();
    let (admin, reader) =
        (keys.add("administrator", Role::Admin), keys.add("onlooker", Role::Read));
    let site = behind("127.0.0.1", &keys, |_| {}).await;
    let post = async |path: &str, key: &str, id: &str| {
        let shown = format!("Bearer {key}");
        let headers = [
            ("authorization", shown.as_str()),
            ("x-request-id", id),
            ("forwarded", "for=203.0.113.5"),
        ];
        crate::site::request(site.http(), "POST", path, &headers, b"").await
    };
    let rotated = post("/v1/node:rotate", &admin, "change-17").await;
    assert_eq!((rotated.status, &*rotated.headers["x-request-id"]), (200, "change-17"));
    let line = seen("by", "administrator").pop().unwrap();
    assert_eq!((&*line["request"], &*line["peer"]), ("change-17", "203.0.113.5"));
    assert_eq!((&*line["verb"], &*line["target"]), ("rotate", "frazil_server::audit"));
    let refused = post("/v1/node:rotate", &reader, "change-18").await;
    assert_eq!((refused.status, &*refused.headers["x-request-id"]), (403, "change-18"));
    assert_eq!(seen("by", "onlooker").pop().unwrap()["request"], "change-18");
    // One that nobody can search for is replaced.
    let strange = post("/v1/node:rotate", &reader, "two words").await;
    let made = &strange.headers["x-request-id"];
    assert_ne!(made, "two words");
    assert_eq!(&seen("by", "onlooker").pop().unwrap()["request"], made);
    for (path, status) in [("/nowhere", 404), ("/livez", 405)] {
        let reply = post(path, &reader, "lost").await;
        assert_eq!((reply.status, &*reply.headers["x-request-id"]), (status, "lost"));
    }
    assert!(!site.get("/livez").await.headers.contains_key("x-request-id"));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_page_of_another_origin_is_written_down() {
    seen::begin();
    let free = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    let site = Site::start_with(|config| config.admin = free).await;
    let headers = [("origin", "https://evil.example"), ("x-request-id", "page-1")];
    let address = site.addrs.admin.unwrap();
    let reply = crate::site::request(address, "POST", "/v1/node:drain", &headers, b"").await;
    assert_eq!(reply.status, 403);
    let line = seen("request", "page-1").pop().unwrap();
    assert_eq!((&*line["refused"], &*line["peer"]), ("origin", "127.0.0.1"));
    assert_eq!(line["protocol"], "admin");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn ids_and_refusals_are_counted_by_key() {
    let mut keys = Keys::new();
    let key = keys.add_with("metered", Role::Ids, |entry| {
        entry.scopes = Some(vec!["orders".to_owned()]);
    });
    let quick = keys.add("quick", Role::Ids);
    let site = behind("127.0.0.1", &keys, |_| {}).await;
    for protocol in ALL {
        assert_eq!(Client::new(&site).key(&key).scope("orders").ask(protocol).await, OK);
        assert_eq!(Client::new(&site).key(&quick).ask(protocol).await, OK);
        assert_eq!(Client::new(&site).key(&key).ask(protocol).await, FORBIDDEN);
        assert_eq!(Client::new(&site).ask(protocol).await, UNAUTHENTICATED);
    }
    for (name, expected) in [
        ("frazil_key_ids_issued_total{key=\"metered\"}", 3.0),
        ("frazil_key_ids_issued_total{key=\"quick\"}", 3.0),
        ("frazil_key_ids_issued_total{key=\"none\"}", 0.0),
        ("frazil_key_refused_total{key=\"metered\",reason=\"FORBIDDEN\"}", 3.0),
        ("frazil_key_refused_total{key=\"none\",reason=\"UNAUTHENTICATED\"}", 3.0),
    ] {
        let counted = site.metric(name).await;
        assert!((counted - expected).abs() < f64::EPSILON, "{name} {counted}");
    }
    site.stop().await.unwrap();
    let site = Site::start().await;
    for protocol in ALL {
        assert_eq!(Client::new(&site).ask(protocol).await, OK);
    }
    let anybody = site.metric("frazil_key_ids_issued_total{key=\"none\"}").await;
    assert!((anybody - 3.0).abs() < f64::EPSILON, "{anybody}");
    site.stop().await.unwrap();
}
