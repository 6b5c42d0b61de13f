//! Transactions, leases and what a member says of itself.

use std::error::Error;

use frazil_etcd::{
    Certificate, Client, ClientTlsConfig, Code, Compare, CompareResult, Config, Identity, KeyValue,
    OperationResponse, PutRequest, RangeRequest, RequestOp, TxnRequest, TxnResponse,
};
use frazil_rig::{Certificates, Etcd, EtcdCluster, EtcdGrpcProxy};

pub(crate) fn connect(etcd: &Etcd) -> Client {
    Client::new(&etcd.address(), &Config::default()).unwrap()
}

/// A transaction without a condition.
pub(crate) fn all(operations: impl Into<Vec<RequestOp>>) -> TxnRequest {
    TxnRequest { success: operations.into(), ..TxnRequest::default() }
}

pub(crate) async fn put(client: &Client, key: &str, value: &str) {
    client.txn(&all([RequestOp::put(key, value)])).await.unwrap();
}

fn read(answer: TxnResponse) -> Vec<KeyValue> {
    let ranges = answer.responses.into_iter().filter_map(|response| match response.response {
        Some(OperationResponse::ResponseRange(range)) => Some(range.kvs),
        _ => None,
    });
    ranges.flatten().collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_does_the_one_or_the_other() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd);
    let claim = |value: &str| TxnRequest {
        compare: vec![Compare::create_revision("key", CompareResult::Equal, 0)],
        success: vec![RequestOp::put("key", value)],
        failure: vec![RequestOp::get("key")],
    };
    let first = client.txn(&claim("first")).await.unwrap();
    let header = first.header.unwrap();
    assert!(first.succeeded && header.cluster_id != 0);
    let second = client.txn(&claim("second")).await.unwrap();
    assert!(!second.succeeded);
    let found = read(second);
    assert_eq!(found[0].value, b"first");
    assert_eq!(found[0].mod_revision, header.revision);
}

#[tokio::test(flavor = "multi_thread")]
async fn comparisons_compare_what_they_say() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd);
    let written = client.txn(&all([RequestOp::put("key", "m")])).await.unwrap();
    let revision = written.header.unwrap().revision;
    use CompareResult::{Equal, Greater, Less};
    for (compare, holds) in [
        (Compare::value("key", Equal, "m"), true),
        (Compare::value("key", Greater, "a"), true),
        (Compare::value("key", Less, "a"), false),
        (Compare::value("none", Equal, ""), false),
        (Compare::mod_revision("key", Equal, revision), true),
        (Compare::mod_revision("key", Greater, revision), false),
        (Compare::mod_revision("none", Equal, 0), true),
        (Compare::create_revision("key", Less, revision), false),
        (Compare::create_revision("key", Greater, 0), true),
    ] {
        let txn = TxnRequest { compare: vec![compare.clone()], ..TxnRequest::default() };
        assert_eq!(client.txn(&txn).await.unwrap().succeeded, holds, "{compare:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_are_read_within_their_limits() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd);
    for key in ["a/1", "a/2", "a0", "b"] {
        put(&client, key, "text").await;
    }
    let of = async |range: RangeRequest| -> Vec<(String, String)> {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        let found = read(client.txn(&all([range.into()])).await.unwrap());
        found.into_iter().map(|kv| (text(kv.key), text(kv.value))).collect()
    };
    let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    assert_eq!(of(RangeRequest::prefix("a/")).await, [pair("a/1", "text"), pair("a/2", "text")]);
    let first = RangeRequest { limit: 1, keys_only: true, ..RangeRequest::prefix("a") };
    assert_eq!(of(first).await, [pair("a/1", "")]);
    let nested = all([all([RequestOp::delete("b")]).into()]);
    client.txn(&nested).await.unwrap();
    assert_eq!(of(RangeRequest::prefix("b")).await, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_that_is_kept_alive_goes_on_and_one_that_ended_is_not_found() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd);
    let lease = client.grant_lease(60).await.unwrap();
    client.keep_lease_alive(lease).await.unwrap();
    let present = PutRequest { key: "own".into(), value: "me".into(), lease };
    client.txn(&all([present.clone().into()])).await.unwrap();
    etcd.etcdctl(&["lease", "revoke", &format!("{lease:x}")]).unwrap();
    assert!(read(client.txn(&all([RequestOp::get("own")])).await.unwrap()).is_empty());
    for refused in [
        client.keep_lease_alive(lease).await.unwrap_err(),
        client.txn(&all([present.into()])).await.unwrap_err(),
    ] {
        assert_eq!(refused.code(), Code::NotFound, "{refused}");
        assert!(refused.message().contains("lease not found"), "{refused}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_is_kept_alive_through_etcds_own_proxy() {
    let etcd = Etcd::start().unwrap();
    let proxy = EtcdGrpcProxy::start(&etcd).unwrap();
    let client = Client::new(&proxy.address(), &Config::default()).unwrap();
    let lease = client.grant_lease(60).await.unwrap();
    // Not often: the proxy takes a second for each.
    for _ in 0..3 {
        client.keep_lease_alive(lease).await.unwrap();
    }
    let nobody = client.keep_lease_alive(lease + 1).await.unwrap_err();
    assert_eq!(nobody.code(), Code::NotFound, "{nobody}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_large_is_refused() {
    let etcd = Etcd::start().unwrap();
    let mut small = Config::default();
    small.answer_max = 1000;
    let client = Client::new(&etcd.address(), &small).unwrap();
    put(&client, "key", &"x".repeat(2000)).await;
    let refused = client.txn(&all([RequestOp::get("key")])).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange, "{refused}");
    assert_eq!(read(connect(&etcd).txn(&all([RequestOp::get("key")])).await.unwrap()).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_tells_of_itself_and_of_its_cluster() {
    let cluster = EtcdCluster::start(3).unwrap();
    let client = connect(cluster.node(0));
    let status = client.status().await.unwrap();
    assert!(status.version.starts_with("3.") && status.errors.is_empty(), "{status:?}");
    assert_eq!(client.member_count().await.unwrap(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_made_again_and_a_refused_one_has_its_cause() {
    let etcd = Etcd::start().unwrap();
    let client = connect(&etcd);
    put(&client, "key", "before").await;
    etcd.restart().unwrap();
    put(&client, "key", "after").await;
    let nobody = Client::new("127.0.0.1:1", &Config::default()).unwrap();
    let refused = nobody.status().await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable, "{refused}");
    let causes = std::iter::successors(refused.source(), |cause| (*cause).source());
    assert!(causes.last().unwrap().to_string().contains("refused"), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_with_a_certificate_of_the_client() {
    let certificates = Certificates::generate().unwrap();
    let etcd = Etcd::builder().mutual_tls(&certificates).start().unwrap();
    let pem = |path| std::fs::read(path).unwrap();
    let tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem(certificates.ca())));
    let identity =
        Identity::from_pem(pem(certificates.client_cert()), pem(certificates.client_key()));
    let ask = async |tls: ClientTlsConfig| {
        let mut config = Config::default();
        config.tls = Some(tls);
        Client::new(&etcd.address(), &config).unwrap().status().await
    };
    ask(tls.clone().identity(identity.clone())).await.unwrap();
    ask(tls).await.unwrap_err();
    ask(ClientTlsConfig::new().identity(identity)).await.unwrap_err();
}
