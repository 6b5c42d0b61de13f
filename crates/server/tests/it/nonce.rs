//! How a client knows that an answer is its own, and where its IDs come from.

use frazil_wire::Info;

use crate::site::secured::Keys;
use crate::site::{Reply, Site, request};

const BINARY: (&str, &str) = ("accept", "application/octet-stream");
const TEXT: (&str, &str) = ("accept", "text/plain");

async fn asked(site: &Site, path: &str, headers: &[(&str, &str)]) -> Reply {
    request(site.http(), "POST", path, headers, b"").await
}

fn echoed(reply: &Reply) -> Option<&str> {
    reply.headers.get("frazil-nonce").map(String::as_str)
}

#[tokio::test]
async fn a_nonce_comes_back_unchanged_in_every_form_and_with_every_failure() {
    let site = Site::start().await;
    let longest = "~".repeat(64);
    for nonce in ["x", "0a!~,;=\"", longest.as_str()] {
        let nonce = ("frazil-nonce", nonce);
        for (path, accept, status) in [
            ("/v1/ids", BINARY, 200),
            ("/ids?count=5000", BINARY, 200),
            ("/ids", TEXT, 200),
            ("/ids", ("accept", "*/*"), 200),
            ("/ids", ("accept", "text/html"), 406),
            ("/v1/ids?count=0", BINARY, 400),
            ("/v1/ids?scope=undeclared", BINARY, 404),
        ] {
            let reply = asked(&site, path, &[accept, nonce]).await;
            assert_eq!((reply.status, echoed(&reply)), (status, Some(nonce.1)), "{path}");
        }
    }
    assert_eq!(echoed(&asked(&site, "/ids", &[BINARY]).await), None);
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_nonce_comes_back_to_those_who_are_not_let_in() {
    let keys = Keys::new();
    let site = Site::start_with(|config| config.keys = Some(keys.path().into())).await;
    let reply = asked(&site, "/ids", &[BINARY, ("frazil-nonce", "mine")]).await;
    assert_eq!((reply.status, echoed(&reply)), (401, Some("mine")));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn what_is_no_nonce_is_refused_and_takes_no_id() {
    let site = Site::start().await;
    let long = "x".repeat(65);
    for bad in ["", "a b", "\u{e9}", long.as_str()] {
        let reply = asked(&site, "/ids", &[("frazil-nonce", bad)]).await;
        assert_eq!((reply.status, reply.reason().as_str()), (400, "INVALID_ARGUMENT"), "{bad:?}");
        assert_eq!(echoed(&reply), None, "{bad:?}");
    }
    let twice = [("frazil-nonce", "x"), ("frazil-nonce", "x")];
    assert_eq!(asked(&site, "/ids", &twice).await.reason(), "INVALID_ARGUMENT");
    assert!(site.issued("http").await < 1.0, "a bad request took an ID");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn text_and_binary_answers_say_who_issued_them_under_which_token() {
    let site = Site::start().await;
    let info: Info = serde_json::from_slice(&site.get("/v1/info").await.body).unwrap();
    let token = info.lanes[0].token.as_deref();
    for accept in [BINARY, TEXT] {
        for path in ["/ids", "/ids?count=5000"] {
            let reply = asked(&site, path, &[accept]).await;
            assert_eq!(reply.headers["frazil-node"], "tested");
            assert_eq!(Some(reply.headers["frazil-token"].as_str()), token);
        }
    }
    let json = asked(&site, "/ids", &[]).await;
    assert!(!json.headers.contains_key("frazil-token"), "JSON has it in its body");
    site.stop().await.unwrap();
}
