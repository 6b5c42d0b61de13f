//! Good URLs, bad URLs, and that no secret is ever shown.

use super::*;

fn parse(text: &str) -> StoreUrl {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn every_form_of_url_is_understood() {
    assert_eq!(parse("file:/var/lib/frazil").path, "/var/lib/frazil");
    assert_eq!(parse("file:///var/lib/frazil").path, "/var/lib/frazil");
    assert_eq!(parse("file:relative/dir").path, "relative/dir");
    for spelling in ["static:7", "static:07", "static:+7"] {
        assert_eq!(parse(spelling).path, "7");
    }
    assert_eq!(parse("memory:").scheme, Scheme::Memory);
    assert_eq!(parse("memory:tests-1").path, "tests-1");
    assert_eq!(parse("redis://localhost").hosts, [("localhost".into(), 6379)]);
    let sentinel = parse("redis+sentinel://a:1,b/mymaster");
    assert_eq!(sentinel.hosts, [("a".into(), 1), ("b".into(), 26379)]);
    assert_eq!(sentinel.path, "mymaster");
    let etcd =
        parse("etcds://me:p%40ss@[::1]:2379,10.0.0.1/some/prefix?timeout=250ms&ca=/x/ca.pem");
    assert!(etcd.tls);
    assert_eq!(etcd.password, Some(Secret::new("p@ss".into())));
    assert_eq!(etcd.addresses().collect::<Vec<_>>(), ["[::1]:2379", "10.0.0.1:2379"]);
    assert_eq!(etcd.timeout(), Duration::from_millis(250));
    assert_eq!(parse("zks://h/chroot").hosts, [("h".into(), 2281)]);
}

#[test]
fn printing_shows_everything_but_the_password() {
    for (text, shown) in [
        ("redis://:hunter2@h", "redis://:***@h:6379"),
        ("redis://me:hunter2@h/3", "redis://me:***@h:6379/3"),
        ("redis://hunter2@h", "redis://***@h:6379"),
        ("redis+cluster://hunter2@h", "redis+cluster://***@h:6379"),
        ("zk://me@h/a/b", "zk://me@h:2181/a/b"),
        ("file:/x", "file:/x"),
        ("static:3", "static:3"),
    ] {
        let url = parse(text);
        assert_eq!(url.to_string(), shown);
        assert!(!format!("{url:?}").contains("hunter2"));
    }
}

#[test]
fn what_is_wrong_is_said_without_repeating_the_text() {
    for (text, expected) in [
        ("", "starts with its scheme"),
        ("hunter2", "starts with its scheme"),
        ("mysql://hunter2@h", "no store is called \"mysql\""),
        ("rediss+sentinal://h", "is no scheme: use "),
        ("hunter2://h", "is no scheme: use "),
        ("HUNTER2hunter2:", "is no scheme: use "),
        (":hunter2", "is no scheme: use "),
        ("redis:h", "two slashes"),
        ("redis://", "write redis://HOST:6379"),
        ("zks://u:hunter2@/path", "write zks://HOST:2281"),
        ("etcd://a,,b", "a host is"),
        ("redis://:hunter2@h:0", "not 1 to 65535"),
        ("redis://:hunter2@h:99999", "not 1 to 65535"),
        ("redis://h/zero", "number of a database"),
        ("redis://h?durabilty=wait-all", "no option \"durabilty\": it has ca"),
        ("redis://h?timeout=5", "timeout is a time"),
        ("redis://h?timeout=0s", "timeout is a time"),
        ("redis://h?timeout=1s&timeout=2s", "given twice"),
        ("zk://h?session=30", "session is a time"),
        ("redis://h?ca=/x", "needs TLS"),
        ("rediss://h?cert=/x", "go together"),
        ("redis://a%zz:b@h", "two hexadecimal digits"),
        ("redis+sentinel://h", "name the master"),
        ("redis+cluster://h/1", "one database"),
        ("static:seven", "static:N"),
        ("redis://u:ab?hunter2=ef@host", "the store has no option:"),
        ("file:", "a directory"),
        ("file://host/x", "file:PATH or"),
        ("memory:a/b", "memory:NAME"),
        ("memory:?x=1", "it has none"),
        ("zk://[::1]x", "not 1 to 65535"),
    ] {
        let error = text.parse::<StoreUrl>().expect_err(text).to_string();
        assert!(error.contains(expected), "{text}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
}

#[test]
fn an_unknown_scheme_is_repeated_only_if_it_looks_like_one() {
    for shown in ["a", "rdis", "redis+sentnl", "abcdefghijkl"] {
        let error = format!("{shown}://h").parse::<StoreUrl>().unwrap_err().to_string();
        assert!(error.contains(&format!("no store is called {shown:?}")), "{error}");
    }
    for hidden in ["SECRET", "Redis", "s3cret", "abcdefghijklm", "top-secret", "a b", "caf\u{e9}"] {
        let error = format!("{hidden}://h").parse::<StoreUrl>().unwrap_err().to_string();
        assert!(!error.contains(hidden), "{error}");
        assert!(error.contains("is no scheme: use file:, "), "{error}");
    }
}

#[test]
fn durations_have_one_unit_or_several_the_larger_first() {
    for (text, expected_ms) in [
        ("0s", 0),
        ("500ms", 500),
        ("10s", 10_000),
        ("1m30s", 90_000),
        ("2h", 7_200_000),
        ("1h0m5s", 3_605_000),
        ("1s500ms", 1500),
    ] {
        assert_eq!(duration(text), Some(Duration::from_millis(expected_ms)), "{text}");
    }
    let huge = "18446744073709551615h";
    for text in ["", "10", "s", "1.5s", "30s1m", "1m1m", "1m 30s", "-1s", "1d", "1m30", huge] {
        assert_eq!(duration(text), None, "{text}");
    }
}
