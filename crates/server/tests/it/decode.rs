//! Many IDs taken apart at once.

use frazil_server::keys::Role;
use frazil_wire::proto::DecodeRequest;
use frazil_wire::proto::id_service_client::IdServiceClient;
use tonic::Code;
use tonic::transport::Channel;
use tonic_types::StatusExt;

use crate::site::secured::Keys;
use crate::site::{Site, request};

#[tokio::test]
async fn an_answer_in_pieces_is_the_same_as_one_at_once() {
    let site = Site::start().await;
    let one = site.get("/v1/ids/175928847299117063?layout=discord").await.json();
    for count in [0, 1, 255, 256, 257, 512, 5_000] {
        let ids = vec!["\"175928847299117063\""; count].join(",");
        let body = format!(r#"{{"layout":"discord","ids":[{ids}]}}"#);
        let reply = site.post_json("/v1/ids:decode", &body).await;
        assert_eq!(reply.headers["content-type"], "application/json");
        let answer = reply.json();
        let decoded = answer["decoded"].as_array().unwrap();
        assert_eq!(decoded.len(), count);
        assert!(decoded.iter().all(|each| *each == one), "{count}");
    }
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_wrong_id_is_named_before_anything_is_answered() {
    let site = Site::start().await;
    for (wrong, reason) in [
        ("\"x\"", "MALFORMED_ID"),
        ("18446744073709551615", "MALFORMED_ID"),
        ("-1", "INVALID_ARGUMENT"),
        ("null", "INVALID_ARGUMENT"),
        ("{}", "INVALID_ARGUMENT"),
        ("1.5", "INVALID_ARGUMENT"),
    ] {
        let body = format!(r#"{{"ids":[{}{wrong}],"layout":"js53"}}"#, "7,".repeat(5_000));
        let reply = site.post_json("/v1/ids:decode", &body).await;
        assert_eq!((reply.status, reply.reason().as_str()), (400, reason), "{wrong}");
        if reason == "MALFORMED_ID" {
            assert!(reply.text().contains("ids[5000]: "), "{}", reply.text());
        }
    }
    let double = r#"{"ids":[1],"ids":[2]}"#;
    assert_eq!(site.post_json("/v1/ids:decode", double).await.reason(), "INVALID_ARGUMENT");
    site.stop().await.unwrap();
}

#[tokio::test]
async fn more_ids_than_the_limit_are_refused() {
    let site = Site::start_with(|config| config.limits.max_count = 300).await;
    let asked = async |count: usize| {
        let body = format!(r#"{{"ids":[{}0]}}"#, "0,".repeat(count - 1));
        site.post_json("/v1/ids:decode", &body).await
    };
    assert_eq!(asked(300).await.status, 200);
    assert_eq!(asked(301).await.reason(), "COUNT_OUT_OF_RANGE");
    assert_eq!(asked(400_000).await.reason(), "COUNT_OUT_OF_RANGE");
    site.stop().await.unwrap();
}

async fn client(site: &Site) -> IdServiceClient<Channel> {
    let address = format!("http://{}", site.addrs.grpc.unwrap());
    IdServiceClient::new(Channel::from_shared(address).unwrap().connect().await.unwrap())
}

#[tokio::test]
async fn a_call_takes_ten_thousand_ids_apart_and_no_more() {
    let site = Site::start().await;
    let mut client = client(&site).await;
    let many = |count| DecodeRequest { ids: vec![7; count], layout: String::new() };
    let mut decode = async |count| {
        let answer = client.decode(many(count)).await;
        answer.map(|answer| answer.into_inner().decoded.len())
    };
    assert_eq!(decode(10_000).await.unwrap(), 10_000);
    let status = decode(10_001).await.unwrap_err();
    let reason = status.get_error_details().error_info().unwrap().reason.clone();
    assert_eq!((status.code(), reason.as_str()), (Code::InvalidArgument, "COUNT_OUT_OF_RANGE"));
    // Nor is a message read that holds far more.
    let status = decode(100_000).await.unwrap_err();
    let reason = status.get_error_details().error_info().unwrap().reason.clone();
    assert_eq!((status.code(), reason.as_str()), (Code::InvalidArgument, "TOO_LARGE"));
    site.stop().await.unwrap();
}

#[tokio::test]
async fn a_hundred_decoded_ids_cost_one_of_the_quota() {
    let mut keys = Keys::new();
    let limited = |entry: &mut frazil_server::keys::KeyEntry| {
        entry.ids_per_second = 10.try_into().ok();
    };
    let http = keys.add_with("web", Role::Read, limited);
    let grpc = keys.add_with("rpc", Role::Read, limited);
    let site = Site::start_with(|config| config.keys = Some(keys.path().into())).await;
    let shown = format!("Bearer {http}");
    let asked = async |count: usize| {
        let headers = [("authorization", shown.as_str()), ("content-type", "application/json")];
        let body = format!(r#"{{"ids":[{}0]}}"#, "0,".repeat(count - 1));
        request(site.http(), "POST", "/v1/ids:decode", &headers, body.as_bytes()).await
    };
    let within = asked(1_000).await;
    assert_eq!((within.status, &*within.headers["ratelimit"]), (200, "\"ids\";r=0;t=1"));
    let beyond = asked(1_000).await;
    assert_eq!((beyond.status, beyond.reason().as_str()), (429, "QUOTA_EXCEEDED"));
    assert!(beyond.headers.contains_key("ratelimit"));
    // It never has so many at once.
    assert_eq!(asked(1_001).await.reason(), "COUNT_OUT_OF_RANGE");
    let mut client = client(&site).await;
    let mut call = async |count| {
        let ids = vec![7; count];
        let mut call = tonic::Request::new(DecodeRequest { ids, layout: String::new() });
        call.metadata_mut().insert("authorization", format!("Bearer {grpc}").parse().unwrap());
        client.decode(call).await.map(|answer| answer.into_inner().decoded.len())
    };
    assert_eq!(call(1_000).await.unwrap(), 1_000);
    assert_eq!(call(1_000).await.unwrap_err().code(), Code::ResourceExhausted);
    site.stop().await.unwrap();
}
