//! Who is let in, and what those hear who are not.

use std::time::Duration;

use frazil_coord::internal::time::boot_time;
use frazil_coord::internal::{Extended, Leasing};
use frazil_coord::{ErrorKind, Group, Store, Strength, Watched};
use frazil_rig::{Certificates, Etcd, Proxy};

use crate::etcd::world::{any, ask, connect, extend, init, namespace, open, refusal, take, until};

const PASSWORD: &str = "open-sesame";

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_nobody_listens_on_is_unavailable() {
    let error = refusal("etcd://127.0.0.1:1?timeout=2s").await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_black_hole_is_unavailable_within_the_time_out() {
    let etcd = Etcd::start().unwrap();
    let proxy = Proxy::start(etcd.address()).unwrap();
    proxy.black_hole();
    let start = boot_time();
    let error = refusal(&format!("etcd://{}?timeout=500ms", proxy.address())).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(boot_time() - start < Duration::from_millis(1500), "{error}");
    // One member that answers is enough.
    let both = format!("etcd://{},{}?timeout=5s", proxy.address(), etcd.address());
    open(&both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_right_password_opens_and_no_message_shows_it() {
    let etcd = Etcd::builder().with_auth("app", PASSWORD).start().unwrap();
    let login = |login: &str| format!("etcd://{login}{}?timeout=3s", etcd.address());
    for wrong in ["app:wrong-sesame@", "nobody:wrong-sesame@", ""] {
        let error = refusal(&login(wrong)).await;
        assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
        assert!(!format!("{error:#} {error:?}").contains("sesame"), "{error}");
    }
    let (store, _, meta) = open(&login(&format!("app:{PASSWORD}@"))).await;
    assert!(!format!("{store} {store:?}").contains(PASSWORD));
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    let tenure = take(&store, &any(meta)).await;
    changes.next().await.unwrap();

    // A restarted server does not know the login any more: it has to be made again.
    etcd.restart().unwrap();
    let again = until("an extension", || async {
        match store.extend(&tenure, &ask(Duration::from_secs(30))).await {
            Ok(Extended::Held(tenure)) => Some(tenure),
            Ok(Extended::Lost(loss)) => panic!("lost: {loss:?}"),
            Err(error) => {
                assert!(error.kind().is_retryable(), "{error}");
                None
            }
        }
    })
    .await;
    assert_eq!(again.token, tenure.token);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_who_may_touch_the_namespace_only_is_enough() {
    let etcd = Etcd::builder().with_auth("root", PASSWORD).start().unwrap();
    let namespace = namespace();
    let prefix = format!("/frazil/{namespace}/");
    for arguments in [
        &["role", "add", "some"][..],
        &["role", "grant-permission", "some", "--prefix=true", "readwrite", &prefix],
        &["user", "add", "few:little-sesame"],
        &["user", "grant-role", "few", "some"],
    ] {
        etcd.etcdctl(arguments).unwrap();
    }
    let url = format!("etcd://few:little-sesame@{}?timeout=3s", etcd.address());
    let store = connect(&url, &namespace).await;
    let meta = init(&store).await;
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    let tenure = take(&store, &any(meta)).await;
    changes.next().await.unwrap();
    let tenure = extend(&store, &tenure).await;
    store.release(&tenure, 0).await.unwrap();
    // Elsewhere it is turned away.
    let error = refusal(&url).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_nobody_asks_for_is_warned_about_and_used_once_it_is() {
    let etcd = Etcd::start().unwrap();
    let (store, _, meta) =
        open(&format!("etcd://root:{PASSWORD}@{}?timeout=3s", etcd.address())).await;
    let warnings = store.guarantees().warnings.join("\n");
    assert!(warnings.contains("auth enable"), "{warnings}");
    let tenure = take(&store, &any(meta)).await;
    for arguments in [
        &["role", "add", "root"][..],
        &["user", "add", &format!("root:{PASSWORD}")],
        &["user", "grant-role", "root", "root"],
        &["auth", "enable"],
    ] {
        etcd.etcdctl(arguments).unwrap();
    }
    extend(&store, &tenure).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_and_a_password_go_together() {
    for url in ["etcd://app@127.0.0.1:1", "etcd://:secret@127.0.0.1:1"] {
        let error = refusal(url).await;
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_opens_to_who_trusts_the_right_authority() {
    let certificates = Certificates::generate().unwrap();
    let etcd = Etcd::builder().tls(&certificates).start().unwrap();
    let secure =
        |ca: &std::path::Path| format!("etcds://{}?timeout=3s&ca={}", etcd.address(), ca.display());
    let (store, _, meta) = open(&secure(certificates.ca())).await;
    let mut changes = store.watch(&Watched::Group(Group::Workers)).await.unwrap();
    take(&store, &any(meta)).await;
    changes.next().await.unwrap();
    for (url, kind) in [
        (secure(certificates.other_ca()), ErrorKind::Denied),
        (secure(certificates.server_key()), ErrorKind::InvalidConfig),
        (secure("/nowhere/ca.pem".as_ref()), ErrorKind::InvalidConfig),
        // Without TLS to a port with it.
        (format!("etcd://{}?timeout=3s", etcd.address()), ErrorKind::Unavailable),
    ] {
        let start = boot_time();
        let error = refusal(&url).await;
        assert_eq!(error.kind(), kind, "{error}");
        let is_plain = url.starts_with("etcd:");
        assert!(!is_plain || format!("{error:#}").contains("write etcds:"), "{error}");
        assert!(boot_time() - start < Duration::from_secs(4), "{error}");
    }
    // With TLS to a port without it.
    let plain = Etcd::start().unwrap();
    let ca = certificates.ca().display();
    let error = refusal(&format!("etcds://{}?timeout=3s&ca={ca}", plain.address())).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(format!("{error:#}").contains("does it speak TLS"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_may_ask_for_a_certificate() {
    let certificates = Certificates::generate().unwrap();
    let etcd = Etcd::builder().mutual_tls(&certificates).start().unwrap();
    let url = format!("etcds://{}?timeout=3s&ca={}", etcd.address(), certificates.ca().display());
    let error = refusal(&url).await;
    assert_eq!(error.kind(), ErrorKind::Denied, "{error}");
    let (cert, key) = (certificates.client_cert(), certificates.client_key());
    open(&format!("{url}&cert={}&key={}", cert.display(), key.display())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guarantees_name_what_was_found() {
    let etcd = Etcd::start().unwrap();
    let (store, ..) = open(&etcd.url()).await;
    let guarantees = store.guarantees();
    assert_eq!(guarantees.uniqueness, Strength::Unconditional);
    assert!(guarantees.store.starts_with("etcd 3."), "{}", guarantees.store);
    let warnings = guarantees.warnings.join("\n");
    assert!(warnings.contains("one member"), "{warnings}");
    if guarantees.store.starts_with("etcd 3.4.23") {
        assert!(warnings.contains("3.4.31"), "{warnings}");
    }
}
