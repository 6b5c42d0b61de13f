//! Logins, permissions and TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;

use frazil_rig::{Certificates, ZooKeeper};
use frazil_zookeeper::{
    Acl, Client, ClientConfig, CreateMode, Error, Login, Permissions, Stage, State,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::place::{ANYONE, config, connect, new_path, server, wait_for};

async fn log_in(port: u16, user: &str, password: &str) -> Client {
    let mut config = config(port);
    config.login = Some(Login { user: user.into(), password: password.into() });
    Client::connect(&config).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_for_its_creator_is_refused_to_others() {
    let port = server().port();
    let ann = log_in(port, "ann", "open-sesame").await;
    let (path, own) = (new_path(), [Acl::creator(Permissions::ALL)]);
    ann.create(&path, b"secret", CreateMode::Persistent, &own).await.unwrap();
    assert_eq!(ann.get_data(&path).await.unwrap().0, b"secret");
    assert!(log_in(port, "ann", "open-sesame").await.get_data(&path).await.is_ok());
    for other in [
        log_in(port, "ann", "wrong").await,
        log_in(port, "bob", "open-sesame").await,
        connect(port).await,
    ] {
        assert!(matches!(other.get_data(&path).await, Err(Error::NoAuth)));
        let below = other.create(&format!("{path}/x"), b"", CreateMode::Persistent, &ANYONE).await;
        assert!(matches!(below, Err(Error::NoAuth)));
        assert!(other.exists(&path).await.unwrap().is_some(), "everybody may ask that");
    }
    // Nobody is the creator without a login.
    let nobody = connect(port).await.create(&new_path(), b"", CreateMode::Persistent, &own).await;
    assert!(matches!(nobody, Err(Error::InvalidAcl)), "{nobody:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn permissions_are_changed() {
    let client = log_in(server().port(), "ann", "open-sesame").await;
    let (other, path) = (connect(server().port()).await, new_path());
    client.create(&path, b"text", CreateMode::Persistent, &ANYONE).await.unwrap();
    assert!(other.get_data(&path).await.is_ok());
    let mixed =
        [Acl::creator(Permissions::ALL), Acl::anyone(Permissions::CREATE | Permissions::WRITE)];
    assert_eq!(client.set_acl(&path, &mixed).await.unwrap().aversion, 1);
    assert!(matches!(other.get_data(&path).await, Err(Error::NoAuth)));
    assert!(other.set_data(&path, b"new", None).await.is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_login_is_repeated_on_a_new_connection() {
    let proxy = frazil_rig::Proxy::start(server().address()).unwrap();
    let client = log_in(proxy.port(), "ann", "open-sesame").await;
    let (path, own) = (new_path(), [Acl::creator(Permissions::ALL)]);
    client.create(&path, b"secret", CreateMode::Persistent, &own).await.unwrap();
    proxy.cut();
    wait_for(&client, State::Disconnected).await;
    proxy.heal();
    wait_for(&client, State::Connected).await;
    assert_eq!(client.get_data(&path).await.unwrap().0, b"secret");
}

fn tls(ca: &Path, identity: Option<&Certificates>) -> Arc<ClientConfig> {
    // Fails if there is a default already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let certificates = |path| CertificateDer::pem_file_iter(path).unwrap().map(Result::unwrap);
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(certificates(ca));
    let builder = ClientConfig::builder().with_root_certificates(roots);
    Arc::new(match identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let key = PrivateKeyDer::from_pem_file(identity.client_key()).unwrap();
            let chain = certificates(identity.client_cert()).collect();
            builder.with_client_auth_cert(chain, key).unwrap()
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_with_a_certificate_of_the_client() {
    let certificates = Certificates::generate().unwrap();
    let server = ZooKeeper::builder().mutual_tls(&certificates).start().unwrap();
    let connect = async |tls| {
        let mut config = config(server.port());
        config.tls = tls;
        Client::connect(&config).await
    };
    let client = connect(Some(tls(certificates.ca(), Some(&certificates)))).await.unwrap();
    client.create("/a", &vec![7; 500_000], CreateMode::Persistent, &ANYONE).await.unwrap();
    assert_eq!(client.get_data("/a").await.unwrap().0.len(), 500_000);

    let why = async |tls| match connect(tls).await {
        Err(Error::Unreachable(failures)) => (failures[0].stage, failures[0].cause.clone()),
        other => panic!("{other:?}"),
    };
    let rustls = |cause: &io::Error| {
        cause.get_ref().and_then(|cause| cause.downcast_ref::<rustls::Error>()).cloned()
    };
    let (stage, cause) = why(Some(tls(certificates.other_ca(), Some(&certificates)))).await;
    assert_eq!(stage, Stage::Tls);
    let is_untrusted = matches!(rustls(&cause), Some(rustls::Error::InvalidCertificate(_)));
    assert!(is_untrusted, "{cause:?}");
    for _ in 0..10 {
        let (_, cause) = why(Some(tls(certificates.ca(), None))).await;
        let is_refused = matches!(rustls(&cause), Some(rustls::Error::AlertReceived(_)));
        assert!(is_refused, "{cause:?}");
    }
    let (stage, _) = why(None).await;
    assert_eq!(stage, Stage::Session);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_without_tls_and_a_name_that_is_none_are_told() {
    let certificates = Certificates::generate().unwrap();
    let mut config = config(server().port());
    config.tls = Some(tls(certificates.ca(), None));
    let Err(Error::Unreachable(failures)) = Client::connect(&config).await else { panic!() };
    assert_eq!(failures[0].stage, Stage::Tls, "{failures:?}");
    config.tls = None;
    config.hosts = vec![("no.such.host.invalid".into(), 2181)];
    let Err(Error::Unreachable(failures)) = Client::connect(&config).await else { panic!() };
    assert_eq!(failures[0].stage, Stage::Connect, "{failures:?}");
}
