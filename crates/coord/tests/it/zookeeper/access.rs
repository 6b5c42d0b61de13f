//! Who gets in, who does not, and what they are told.

use std::time::Duration;

use frazil_coord::internal::stores::zookeeper::ZooKeeperStore;
use frazil_coord::internal::{Choice, Extended, Leasing};
use frazil_coord::{Error, ErrorKind, Group, Namespace, Nonce, Store, StoreUrl};
use frazil_rig::{Certificates, Proxy, ZooKeeper};
use frazil_zookeeper as zk;

use crate::zookeeper::place::{ask, begin, claim, control, server, settings, take};

fn namespace() -> Namespace {
    format!("ns-{}", Nonce::mint().unwrap()).parse().unwrap()
}

async fn connect(url: &str, namespace: &Namespace) -> Result<ZooKeeperStore, Error> {
    let url: StoreUrl = url.parse().unwrap();
    let limit = url.timeout() + Duration::from_millis(500);
    let connected = ZooKeeperStore::connect(&url, namespace);
    tokio::time::timeout(limit, connected).await.expect("connecting ends within the time-out")
}

async fn refused(url: &str, namespace: &Namespace) -> (ErrorKind, String) {
    let error = connect(url, namespace).await.expect_err(url);
    let text = format!("{error:#} {error:?}");
    assert!(!text.contains("hunter2"), "{text}");
    (error.kind(), text)
}

async fn works(store: &ZooKeeperStore) {
    let meta = begin(store).await;
    let any = claim(meta, Choice::Any { first: 0, last: 3, favourite: None });
    let tenure = take(store, &any).await;
    assert!(matches!(store.extend(&tenure, &ask(0)).await, Ok(Extended::Held(_))));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_user_writes_is_for_that_user_and_password() {
    let (address, ours) = (server().address(), namespace());
    let root = format!("access-{}", Nonce::mint().unwrap());
    let url = |login: &str| format!("zk://{login}{address}/{root}/deep");
    let store = connect(&url("ann:hunter2@"), &ours).await.unwrap();
    works(&store).await;
    assert_eq!(store.to_string(), format!("zk://ann:***@{address}/{root}/deep"));
    assert!(!format!("{store:?} {:?}", store.guarantees()).contains("hunter2"));
    for login in ["ann:hunter2wrong@", "bob:hunter2@", ""] {
        let (kind, text) = refused(&url(login), &ours).await;
        assert_eq!(kind, ErrorKind::Denied, "{text}");
    }
    connect(&url("ann:hunter2@"), &ours).await.unwrap().meta().await.unwrap().unwrap();
    // Others have namespaces of their own beside it.
    works(&connect(&url("bob:hunter2@"), &namespace()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn permission_that_is_taken_away_later_is_denied() {
    let (address, ours) = (server().address(), namespace());
    let store = connect(&format!("zk://{address}/tests"), &ours).await.unwrap();
    let meta = begin(&store).await;
    let any = claim(meta, Choice::Any { first: 0, last: 3, favourite: None });
    let tenure = take(&store, &any).await;
    let mut settings = settings(&address);
    settings.login = Some(zk::Login { user: "ann".into(), password: "hunter2".into() });
    let control = zk::Client::connect(&settings).await.unwrap();
    for rest in [format!("w/{}", tenure.slot.name()), "meta".into()] {
        let path = format!("/tests/{ours}/{rest}");
        control.set_acl(&path, &[zk::Acl::creator(zk::Permissions::ALL)]).await.unwrap();
    }
    assert_eq!(store.meta().await.unwrap_err().kind(), ErrorKind::Denied);
    let extended = store.extend(&tenure, &ask(0)).await;
    assert_eq!(extended.unwrap_err().kind(), ErrorKind::Denied);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_cannot_be_reached_is_unavailable_within_the_time_out() {
    let free = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let (kind, text) = refused(&format!("zk://{free}?timeout=2s"), &namespace()).await;
    assert_eq!(kind, ErrorKind::Unavailable, "{text}");
    assert!(text.contains("refused"), "{text}");
    let hole = Proxy::start(server().address()).unwrap();
    hole.black_hole();
    for scheme in ["zk", "zks"] {
        let url = format!("{scheme}://{}?timeout=1s", hole.address());
        let (kind, text) = refused(&url, &namespace()).await;
        assert_eq!(kind, ErrorKind::Unavailable, "{text}");
    }
    // One good host among bad ones is enough.
    let good = server().address();
    let url = format!("zk://{free},{},{good}/tests?timeout=6s", hole.address());
    works(&connect(&url, &namespace()).await.unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_that_make_no_sense_are_said_to() {
    let (address, ours) = (server().address(), namespace());
    for url in [
        format!("zk://ann@{address}"),
        format!("zk://:hunter2@{address}"),
        format!("zk://{address}/a//b"),
        format!("zk://ann@{address}?password_file=/nowhere/hunter"),
        format!("zks://{address}?ca=/nowhere/ca.pem"),
        format!("zks://{address}?ca=/dev/null"),
    ] {
        let (kind, text) = refused(&url, &ours).await;
        assert_eq!(kind, ErrorKind::InvalidConfig, "{url}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_takes_the_right_authority_and_certificate() {
    let certificates = Certificates::generate().unwrap();
    let server = ZooKeeper::builder().mutual_tls(&certificates).start().unwrap();
    wait_for_tls(&server);
    let address = server.address();
    let (ca, other) = (certificates.ca().display(), certificates.other_ca().display());
    let (cert, key) = (certificates.client_cert().display(), certificates.client_key().display());
    let identity = format!("cert={cert}&key={key}");
    let good = format!("zks://{address}?ca={ca}&{identity}");
    let store = connect(&good, &namespace()).await.unwrap();
    works(&store).await;
    for (url, why) in [
        (format!("zks://{address}?ca={other}&{identity}"), "not trusted"),
        (format!("zks://{address}?ca={ca}"), "rejects us"),
    ] {
        let (kind, text) = refused(&url, &namespace()).await;
        assert_eq!(kind, ErrorKind::Denied, "{text}");
        assert!(text.contains(why), "{text}");
    }
    let mismatched = format!("zks://{address}?ca={ca}&cert={cert}&key={}", mismatch(&certificates));
    let (kind, text) = refused(&mismatched, &namespace()).await;
    assert_eq!(kind, ErrorKind::InvalidConfig, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_on_one_side_only_is_told_and_does_not_hang() {
    let certificates = Certificates::generate().unwrap();
    let secure = ZooKeeper::builder().tls(&certificates).start().unwrap();
    wait_for_tls(&secure);
    let ca = certificates.ca().display();
    works(&connect(&format!("zks://{}?ca={ca}", secure.address()), &namespace()).await.unwrap())
        .await;
    let (kind, text) = refused(&format!("zk://{}", secure.address()), &namespace()).await;
    assert_eq!(kind, ErrorKind::Unavailable, "{text}");
    assert!(text.contains("wants TLS"), "{text}");
    let plain = server().address();
    let (kind, text) = refused(&format!("zks://{plain}?ca={ca}"), &namespace()).await;
    assert_eq!(kind, ErrorKind::Unavailable, "{text}");
    assert!(text.contains("no TLS there"), "{text}");
}

/// A server serves its port without TLS a little before the one with TLS.
fn wait_for_tls(server: &ZooKeeper) {
    let secure: std::net::SocketAddr = server.address().parse().unwrap();
    let opens = || std::net::TcpStream::connect(secure).is_ok();
    frazil_rig::wait_until("the port with TLS", Duration::from_secs(20), opens).unwrap();
}

/// A key that is not that of the client's certificate.
fn mismatch(certificates: &Certificates) -> std::path::Display<'_> {
    certificates.server_key().display()
}

#[tokio::test(flavor = "multi_thread")]
async fn to_look_is_to_create_no_node() {
    let (address, ours) = (server().address(), namespace());
    let root = format!("look-{}", Nonce::mint().unwrap());
    let url: StoreUrl = format!("zk://{address}/{root}").parse().unwrap();
    let store = ZooKeeperStore::look(&url, &ours).await.unwrap();
    assert_eq!(store.meta().await.unwrap(), None);
    assert!(store.list(Group::Workers).await.unwrap().is_empty());
    assert_eq!(control(&address).await.exists(&format!("/{root}")).await.unwrap(), None);
}
