//! HTTP as clients see it.

use std::collections::BTreeSet;

use frazil_id::{Id, Layout};
use frazil_server::endpoints;
use frazil_wire::{Cluster, IdsReply, Info};

use crate::site::{Site, request};

#[tokio::test]
async fn one_id_by_default_with_where_it_comes_from() {
    let site = Site::start_with(|config| config.region = Some("eu \"1\"".to_owned())).await;
    for path in ["/v1/ids", "/ids"] {
        let reply = site.post(path).await;
        assert_eq!(
            (reply.status, reply.headers["content-type"].as_str()),
            (200, "application/json")
        );
        assert_eq!(reply.headers["cache-control"], "no-store");
        let ids: IdsReply = serde_json::from_slice(&reply.body).unwrap();
        assert_eq!((ids.ids.len(), ids.count), (1, 1));
        let parts = ids.ids[0].parts(&Layout::FRAZIL).unwrap();
        let meta = ids.metadata;
        assert_eq!((u64::from(meta.worker), meta.node.as_str()), (parts.worker, "tested"));
        assert_eq!((meta.region.as_deref(), meta.scope), (Some("eu \"1\""), None));
        assert_eq!(meta.layout, Layout::FRAZIL.to_string());
        let time: frazil_id::rfc3339::Instant = meta.first_time.parse().unwrap();
        assert_eq!(time.unix_ms().cast_unsigned(), Layout::FRAZIL.unix_ms(parts.tick));
        assert!(meta.token.parse::<u64>().unwrap() > 0);
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn batches_are_exact_sorted_and_the_same_in_every_form() {
    let site = Site::start().await;
    let mut all = BTreeSet::new();
    let mut expected = 0;
    for count in [1, 2, 10, 1000, 4097, 100_000] {
        let path = format!("/v1/ids?count={count}");
        let json: IdsReply = serde_json::from_slice(&site.post(&path).await.body).unwrap();
        let text = request(site.http(), "POST", &path, &[("accept", "text/plain")], b"").await;
        let text: Vec<Id> = text.text().lines().map(|line| line.parse().unwrap()).collect();
        let accept = [("accept", "application/octet-stream")];
        let binary = request(site.http(), "POST", &path, &accept, b"").await.body;
        let binary: Vec<Id> = binary
            .chunks(8)
            .map(|bytes| Id::from_u64(u64::from_be_bytes(bytes.try_into().unwrap())))
            .collect();
        assert_eq!(json.count, count);
        for ids in [json.ids, text, binary] {
            assert_eq!(ids.len() as u64, count);
            assert!(ids.is_sorted_by(|one, other| one < other));
            expected += ids.len();
            all.extend(ids);
        }
    }
    assert_eq!(all.len(), expected, "an ID was issued twice");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn nonsense_is_told_so_and_takes_no_id() {
    let site = Site::start().await;
    site.post("/ids").await;
    let many = "9".repeat(8_000);
    for (count, reason) in [
        ("0", "COUNT_OUT_OF_RANGE"),
        ("-1", "COUNT_OUT_OF_RANGE"),
        ("1000000000", "COUNT_OUT_OF_RANGE"),
        ("100001", "COUNT_OUT_OF_RANGE"),
        ("9223372036854775808", "COUNT_OUT_OF_RANGE"),
        (many.as_str(), "COUNT_OUT_OF_RANGE"),
        ("1e3", "INVALID_ARGUMENT"),
        ("0x10", "INVALID_ARGUMENT"),
        ("%207", "INVALID_ARGUMENT"),
        ("7,8", "INVALID_ARGUMENT"),
        ("", "INVALID_ARGUMENT"),
        ("1&count=2", "INVALID_ARGUMENT"),
        ("1&cuont=2", "INVALID_ARGUMENT"),
        ("%ff", "INVALID_ARGUMENT"),
    ] {
        let reply = site.post(&format!("/v1/ids?count={count}")).await;
        assert_eq!((reply.status, reply.reason().as_str()), (400, reason), "{count:.30}");
    }
    let reply = site.post(&format!("/v1/ids?count={many}{many}")).await;
    assert_eq!((reply.status, reply.reason().as_str()), (414, "URI_TOO_LONG"));
    let reply = site.post("/v1/ids?scope=undeclared").await;
    assert_eq!((reply.status, reply.reason().as_str()), (404, "NOT_FOUND"));
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"] {
        let reply = request(site.http(), method, "/v1/ids", &[], b"").await;
        assert_eq!((reply.status, reply.reason().as_str()), (405, "METHOD_NOT_ALLOWED"));
        assert_eq!(reply.headers["allow"], "POST");
    }
    let reply = site.post_json("/v1/ids", "{}").await;
    assert_eq!((reply.status, reply.reason().as_str()), (400, "INVALID_ARGUMENT"));
    let reply = request(site.http(), "POST", "/ids", &[("accept", "text/html")], b"").await;
    assert_eq!((reply.status, reply.reason().as_str()), (406, "NOT_ACCEPTABLE"));
    for path in ["/v1", "/v1/ids/", "/v1/ids/1/2", "/v1/idsx"] {
        let reply = site.get(path).await;
        assert_eq!((reply.status, reply.reason().as_str()), (404, "NOT_FOUND"), "{path}");
    }
    assert!((site.issued("http").await - 1.0).abs() < f64::EPSILON, "a bad request took an ID");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn forms_without_metadata_say_in_headers_where_ids_come_from() {
    let site = Site::start_with(|config| config.region = Some("eu".to_owned())).await;
    let token = site.post("/ids").await.json()["metadata"]["token"].as_str().unwrap().to_owned();
    // Both how few are written, and how many.
    for count in [1, 5000] {
        for accept in ["text/plain", "application/octet-stream"] {
            let path = format!("/v1/ids?count={count}");
            let reply = request(site.http(), "POST", &path, &[("accept", accept)], b"").await;
            assert_eq!(reply.headers["frazil-node"], "tested");
            assert_eq!(reply.headers["frazil-region"], "eu");
            assert_eq!(reply.headers["frazil-token"], token);
        }
    }
    let json = site.post("/ids").await;
    assert!(!json.headers.contains_key("frazil-token"), "it has it in its body");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn every_answer_to_a_request_for_ids_repeats_its_nonce() {
    let site = Site::start().await;
    let longest = "~".repeat(64);
    let most = "9".repeat(16_000);
    let too_long = format!("/v1/ids?count={most}");
    for (path, status) in [
        ("/v1/ids", 200),
        ("/ids?count=5000", 200),
        ("/v1/ids?count=0", 400),
        ("/v1/ids?scope=undeclared", 404),
        (&too_long, 414),
    ] {
        for nonce in ["!", "0190c6a2-7e4b", longest.as_str()] {
            let reply = request(site.http(), "POST", path, &[("frazil-nonce", nonce)], b"").await;
            assert_eq!((reply.status, reply.headers["frazil-nonce"].as_str()), (status, nonce));
        }
        let reply = site.post(path).await;
        assert!(!reply.headers.contains_key("frazil-nonce"), "nobody said one");
    }
    let issued = site.issued("http").await;
    let longer = "~".repeat(65);
    for nonce in ["", "two words", "\u{e9}", longer.as_str()] {
        let reply = request(site.http(), "POST", "/ids", &[("frazil-nonce", nonce)], b"").await;
        assert_eq!((reply.status, reply.reason().as_str()), (400, "INVALID_ARGUMENT"), "{nonce}");
        assert!(!reply.headers.contains_key("frazil-nonce"), "{nonce} is none");
    }
    let two = [("frazil-nonce", "one"), ("frazil-nonce", "two")];
    let reply = request(site.http(), "POST", "/ids", &two, b"").await;
    assert_eq!(reply.reason(), "INVALID_ARGUMENT");
    assert!((site.issued("http").await - issued).abs() < f64::EPSILON, "they took no IDs");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn several_accept_headers_are_one_list_and_an_empty_body_is_none() {
    let site = Site::start().await;
    let accept = [("accept", "text/html"), ("accept", "text/plain")];
    let reply = request(site.http(), "POST", "/ids", &accept, b"").await;
    assert_eq!(
        (reply.status, reply.headers["content-type"].as_str()),
        (200, "text/plain; charset=utf-8")
    );
    let chunked = [("transfer-encoding", "chunked")];
    let sent = |body: &'static str| async move {
        let head = "POST /ids HTTP/1.1\r\nhost: test\r\nconnection: close\r\n";
        format!("{head}{}: {}\r\n\r\n{body}", chunked[0].0, chunked[0].1)
    };
    for (body, status) in [("0\r\n\r\n", 200), ("2\r\n{}\r\n0\r\n\r\n", 400)] {
        let reply = crate::site::send(site.http(), sent(body).await.as_bytes()).await;
        assert_eq!(reply.status, status, "{body:?}");
    }
    site.stop().await.unwrap();
}

/// Every histogram ends with a bucket for everything, as quantiles need it.
#[tokio::test]
async fn histograms_are_complete() {
    let site = Site::start().await;
    site.post("/ids?count=7").await;
    let page = site.get("/metrics").await.text();
    let counts = page.lines().filter(|line| line.contains("_count"));
    let mut histograms = 0;
    for line in counts {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (family, labels) = name.split_once("_count").unwrap();
        let labels = labels.trim_matches(['{', '}']);
        let comma = if labels.is_empty() { "" } else { "," };
        let buckets = [
            format!("{family}_bucket{{le=\"+Inf\"{comma}{labels}}} {value}"),
            format!("{family}_bucket{{{labels}{comma}le=\"+Inf\"}} {value}"),
        ];
        assert!(page.lines().any(|line| buckets.iter().any(|b| b == line)), "{line}");
        histograms += 1;
    }
    assert!(histograms >= 5, "{page}");
    site.stop().await.unwrap();
}

/// A layout of 16 IDs a second: what one lane cannot issue in time is not offered.
#[tokio::test]
async fn more_than_can_come_in_time_is_refused_at_once_and_takes_nothing() {
    let layout: Layout =
        "time:40 worker:10 sequence:4 @2024-01-01T00:00:00Z tick:1s".parse().unwrap();
    let site = Site::start_with(|config| {
        config.node = config.node.clone().layout(layout).options(frazil::id::Options::default());
    })
    .await;
    let info: Info = serde_json::from_slice(&site.get("/v1/info").await.body).unwrap();
    assert_eq!(info.limits.max_count, 48, "a tick at once, and two within the longest wait");
    assert_eq!(site.post("/ids?count=49").await.reason(), "COUNT_OUT_OF_RANGE");
    let described = site.get("/openapi.json").await.json();
    let count = &described["paths"]["/v1/ids"]["post"]["parameters"][0]["schema"]["maximum"];
    assert_eq!(count, 48);
    assert!(site.issued("http").await < 1.0);
    site.stop().await.unwrap();
}

/// Half a request is no reason to stay.
#[tokio::test]
async fn half_a_request_does_not_hold_the_end_up() {
    use tokio::io::AsyncWriteExt;
    let site = Site::start_with(|config| {
        config.drain_timeout = std::time::Duration::from_secs(3600);
    })
    .await;
    let mut stream = tokio::net::TcpStream::connect(site.http()).await.unwrap();
    stream.write_all(b"POST /ids HTTP/1.1\r\nhost:").await.unwrap();
    assert_eq!(site.post("/ids").await.status, 200);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), site.stop()).await;
    ended.expect("it ends").unwrap();
}

#[tokio::test]
async fn a_head_that_is_too_long_or_broken_closes_the_connection_only() {
    let site = Site::start().await;
    let long = format!("/ids?count={}", "9".repeat(1 << 20));
    let reply = site.post(&long).await;
    assert!((400..500).contains(&reply.status), "{}", reply.status);
    let many: Vec<(String, String)> = (0..500).map(|n| (format!("x-{n}"), "y".into())).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let reply = request(site.http(), "POST", "/ids", &many, b"").await;
    assert!((400..500).contains(&reply.status), "{}", reply.status);
    assert_eq!(site.post("/ids").await.status, 200);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn declared_scopes_are_named_and_counted() {
    let scopes = vec!["orders".into(), "carts".into()];
    let site = Site::start_with(|config| config.scopes = scopes).await;
    let reply: IdsReply =
        serde_json::from_slice(&site.post("/v1/ids?scope=carts&count=7").await.body).unwrap();
    assert_eq!(reply.metadata.scope.as_deref(), Some("carts"));
    let issued = site.metric("frazil_ids_issued_total{protocol=\"http\",scope=\"carts\"}").await;
    assert!((issued - 7.0).abs() < f64::EPSILON);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn ids_are_taken_apart_and_put_together() {
    let site = Site::start().await;
    let one = site.get("/v1/ids/175928847299117063?layout=discord").await.json();
    assert_eq!(one["time"], "2016-04-30T11:18:25.796Z");
    assert_eq!((&one["parts"]["worker"], &one["sequence"]), (&1.into(), &7.into()));
    let many = site
        .post_json(
            "/v1/ids:decode",
            r#"{"ids":["175928847299117063",175928847299117063],"layout":"discord"}"#,
        )
        .await
        .json();
    assert_eq!((&many["decoded"][0], &many["decoded"][1]), (&one, &one));
    let encode = r#"{"time":"2016-04-30T11:18:25.796Z","parts":{"worker":1,"process":0},
                    "sequence":7,"layout":"discord"}"#;
    assert_eq!(site.post_json("/v1/ids:encode", encode).await.json(), one);
    let encode = r#"{"unix_ms":1462015105796,"worker":32,"sequence":7,"layout":"discord"}"#;
    assert_eq!(site.post_json("/v1/ids:encode", encode).await.json(), one);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn what_cannot_be_taken_apart_or_put_together_says_why() {
    let site = Site::start().await;
    for (path, status, reason) in [
        ("/v1/ids/x", 400, "MALFORMED_ID"),
        ("/v1/ids/18446744073709551616", 400, "MALFORMED_ID"),
        ("/v1/ids/18446744073709551615?layout=js53", 400, "MALFORMED_ID"),
        ("/v1/ids/1?layout=nonsense", 400, "UNKNOWN_LAYOUT"),
        ("/v1/ids/1?lay=discord", 400, "INVALID_ARGUMENT"),
    ] {
        let reply = site.get(path).await;
        assert_eq!((reply.status, reply.reason().as_str()), (status, reason), "{path}");
    }
    for (path, body, reason) in [
        ("/v1/ids:decode", "", "UNSUPPORTED_MEDIA_TYPE"),
        ("/v1/ids:decode", "{", "INVALID_ARGUMENT"),
        ("/v1/ids:decode", r#"{"ids":"7"}"#, "INVALID_ARGUMENT"),
        ("/v1/ids:decode", r#"{"ids":[-1]}"#, "INVALID_ARGUMENT"),
        ("/v1/ids:decode", r#"{"ids":["x"]}"#, "MALFORMED_ID"),
        ("/v1/ids:decode", r#"{"ids":[],"more":1}"#, "INVALID_ARGUMENT"),
        ("/v1/ids:encode", r#"{"sequence":1}"#, "INVALID_ARGUMENT"),
        ("/v1/ids:encode", r#"{"unix_ms":1,"time":"2030-01-01T00:00:00Z"}"#, "INVALID_ARGUMENT"),
        ("/v1/ids:encode", r#"{"unix_ms":1}"#, "INVALID_ARGUMENT"),
        ("/v1/ids:encode", r#"{"unix_ms":1893456000000,"worker":99999}"#, "INVALID_ARGUMENT"),
        ("/v1/ids:encode", r#"{"unix_ms":1893456000000,"parts":{"x":1}}"#, "INVALID_ARGUMENT"),
    ] {
        let reply =
            if body.is_empty() { site.post(path).await } else { site.post_json(path, body).await };
        assert_eq!(reply.reason(), reason, "{path} {body}");
    }
    let large = format!(r#"{{"ids":["{}"]}}"#, "1".repeat(4 << 20));
    let reply = site.post_json("/v1/ids:decode", &large).await;
    assert_eq!((reply.status, reply.reason().as_str()), (413, "TOO_LARGE"));
    let wrong = [("content-type", "text/plain")];
    let reply = request(site.http(), "POST", "/v1/ids:decode", &wrong, b"{}").await;
    assert_eq!((reply.status, reply.reason().as_str()), (415, "UNSUPPORTED_MEDIA_TYPE"));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_node_tells_about_itself_and_its_peers() {
    let site = Site::start_with(|config| {
        config.advertise = Some("http://10.0.0.7:7780".to_owned());
        config.node = config.node.clone().workers(4..=9);
    })
    .await;
    let info: Info = serde_json::from_slice(&site.get("/v1/info").await.body).unwrap();
    assert_eq!((info.node.state.as_str(), info.node.name.as_str()), ("ready", "tested"));
    assert_eq!((info.limits.max_count, info.lanes.len()), (100_000, 1));
    let worker = info.lanes[0].worker.unwrap();
    assert!((4..=9).contains(&worker));
    // What was acknowledged, which is more than a lane uses by itself.
    assert!(info.node.issuable_seconds > 20.0, "{}", info.node.issuable_seconds);
    assert!(info.store.unwrap().up);
    let cluster: Cluster = serde_json::from_slice(&site.get("/v1/cluster").await.body).unwrap();
    assert_eq!((cluster.workers.capacity, cluster.workers.held, cluster.workers.free), (6, 1, 5));
    let node = &cluster.nodes[0];
    assert_eq!((node.name.as_str(), node.workers.as_slice()), ("tested", [worker].as_slice()));
    assert_eq!(node.advertise.as_deref(), Some("http://10.0.0.7:7780"));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn probes_metrics_and_the_description_answer() {
    let site = Site::start().await;
    assert_eq!(site.get("/livez").await.text(), "ok\n");
    let index = site.get("/").await;
    assert_eq!((index.status, index.text().contains("POST /v1/ids")), (200, true));
    let ready = site.get("/readyz").await;
    assert_eq!((ready.status, ready.text().as_str()), (200, "ready\n"));
    let verbose = site.get("/readyz?verbose").await.text();
    assert!(verbose.contains("[+] lane: worker ") && verbose.contains("s left"), "{verbose}");
    assert!((site.metric("frazil_workers_in_use").await - 1.0).abs() < f64::EPSILON);
    assert!((site.metric("frazil_workers_capacity").await - 1024.0).abs() < f64::EPSILON);
    assert!((site.metric("frazil_node_state{state=\"ready\"}").await - 1.0).abs() < f64::EPSILON);
    assert!(site.metric("frazil_issuable_seconds").await > 20.0);
    let page = site.get("/metrics").await.text();
    // What cannot be is not counted, and what can be is there before it occurs.
    for (protocol, method, code, is_shown) in [
        ("grpc", "stream", "OK", true),
        ("http", "stream", "OK", false),
        ("resp", "admin", "OK", false),
        ("http", "next", "URI_TOO_LONG", true),
        ("resp", "next", "URI_TOO_LONG", false),
        ("http", "next", "MALFORMED_ID", false),
        ("resp", "next", "QUOTA_EXCEEDED", true),
    ] {
        let sample = format!("{{protocol=\"{protocol}\",method=\"{method}\",code=\"{code}\"}}");
        assert_eq!(page.contains(&sample), is_shown, "{sample}");
    }
    let samples = page.lines().filter(|line| !line.starts_with('#')).count();
    assert!(samples < 250, "{samples} samples of a node that nobody has asked for an ID");
    let accept = [("accept", "application/openmetrics-text; version=1.0.0")];
    let open = request(site.http(), "GET", "/metrics", &accept, b"").await;
    assert!(open.headers["content-type"].starts_with("application/openmetrics-text"));
    assert!(open.text().ends_with("# EOF\n"));
    let described = site.get("/openapi.json").await.json();
    assert_eq!(described["openapi"], "3.1.0");
    let head = request(site.http(), "HEAD", "/v1/info", &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    site.stop().await.unwrap();
}

/// What the description says must exist, and what exists must be described.
#[tokio::test]
async fn every_path_is_described_with_its_methods() {
    let site = Site::start().await;
    let described = site.get("/openapi.json").await.json();
    let paths = described["paths"].as_object().unwrap();
    let described: BTreeSet<String> = paths
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let table = endpoints().into_iter().filter(|endpoint| endpoint.protocol == "http");
    assert_eq!(described, table.map(|endpoint| endpoint.name).collect());
    for (path, methods) in paths {
        let path = path.replace("{id}", "1").replace("{worker}", "1").replace("{name}", "x");
        let allow = request(site.http(), "TRACE", &path, &[], b"").await.headers["allow"].clone();
        for method in methods.as_object().unwrap().keys() {
            assert!(allow.contains(&method.to_uppercase()), "{method} {path}: {allow}");
        }
    }
    site.stop().await.unwrap();
}
