//! Keys and TLS.

use std::fs;

use frazil_rig::Certificates;
use frazil_server::TlsFiles;
use frazil_server::keys::{KeyEntry, NewKey, Role};

use super::*;

#[tokio::test]
async fn a_key_opens_the_door_and_without_it_there_is_one_attempt() {
    let directory = tempfile::tempdir().unwrap();
    let (keys, file) = (directory.path().join("keys.toml"), directory.path().join("key"));
    let key = NewKey::mint().unwrap();
    fs::write(&keys, entry(&key)).unwrap();
    fs::write(&file, format!("{}\n", key.text())).unwrap();
    let site = Site::start_with(|config| config.keys = Some(keys.into())).await;
    for endpoint in [site.http(), site.grpc()] {
        let builder = Client::builder().endpoint(endpoint);
        let client = builder.clone().key_file(&file).connect().await.unwrap();
        many(&client, 10).await;
        let stranger = builder.key("fzk_of_another").build().unwrap();
        let error = stranger.next().await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::Unauthenticated), "{error}");
        assert_eq!(stranger.stats().retries, 0, "{:?}", stranger.stats());
    }
    site.stop().await;
}

/// A key as it stands in a file of keys.
fn entry(key: &NewKey) -> String {
    let entry = serde_json::to_value(KeyEntry::of(key, "shop", vec![Role::Ids])).unwrap();
    let lines =
        entry.as_object().unwrap().iter().map(|(name, value)| format!("{name} = {value}\n"));
    format!("[[key]]\n{}", lines.collect::<String>())
}

#[tokio::test]
async fn a_key_that_was_rotated_is_read_again_once_for_each_call() {
    let directory = tempfile::tempdir().unwrap();
    let (keys, file) = (directory.path().join("keys.toml"), directory.path().join("key"));
    let (old, new) = (NewKey::mint().unwrap(), NewKey::mint().unwrap());
    fs::write(&keys, entry(&new)).unwrap();
    let site = Site::start_with(|config| config.keys = Some(keys.into())).await;
    for endpoint in [site.http(), site.grpc()] {
        fs::write(&file, old.text()).unwrap();
        let builder = Client::builder().endpoint(endpoint).prefetch(0);
        let client = builder.clone().key_file(&file).build().unwrap();
        // The control: the file still has the key that nobody takes.
        let error = client.next().await.unwrap_err();
        assert_eq!(error.reason(), Some(Reason::Unauthenticated), "{error}");
        assert_eq!(client.stats().retries, 0, "{:?}", client.stats());
        fs::write(&file, new.text()).unwrap();
        many(&client, 10).await;
        assert_eq!(client.stats().retries, 1, "{:?}", client.stats());
        // Another control: a key that was given as text stays what it is.
        let fixed = builder.key(old.text()).build().unwrap();
        assert_eq!(fixed.next().await.unwrap_err().reason(), Some(Reason::Unauthenticated));
    }
    site.stop().await;
}

#[tokio::test]
async fn a_server_that_asks_who_we_are_is_told() {
    let certificates = Certificates::generate().unwrap();
    let site = Site::start_with(|config| {
        config.tls = Some(
            TlsFiles::new(
                certificates.server_cert().to_owned(),
                certificates.server_key().to_owned(),
            )
            .with_client_ca(certificates.ca().to_owned()),
        );
    })
    .await;
    let (http, grpc) = (site.addrs.http.unwrap().port(), site.addrs.grpc.unwrap().port());
    let (cert, key) = (certificates.client_cert(), certificates.client_key());
    for endpoint in [format!("https://localhost:{http}"), format!("grpcs://localhost:{grpc}")] {
        let builder = Client::builder().endpoint(&endpoint).ca(certificates.ca());
        let client = builder.clone().identity(cert, key).connect().await.unwrap();
        many(&client, 10).await;
        let nobody = builder.deadline(Duration::from_secs(2)).connect().await.unwrap_err();
        assert!(nobody.is_retryable() && nobody.reason().is_none(), "{endpoint}: {nobody}");
    }
    let builder = Client::builder().endpoint("https://localhost").ca(certificates.ca());
    for (cert, key) in [
        (cert, certificates.server_key()),
        (key, key),
        (cert, cert),
        (std::path::Path::new("/nowhere"), key),
    ] {
        let error = builder.clone().identity(cert, key).build().unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "{error}");
        assert!(error.to_string().contains("is of no use"), "{error}");
    }
    site.stop().await;
}

#[tokio::test]
async fn tls_is_spoken_with_whom_the_authority_vouches_for_alone() {
    let certificates = Certificates::generate().unwrap();
    let site = Site::start_with(|config| {
        config.tls = Some(TlsFiles::new(
            certificates.server_cert().to_owned(),
            certificates.server_key().to_owned(),
        ));
    })
    .await;
    let (http, grpc) = (site.addrs.http.unwrap().port(), site.addrs.grpc.unwrap().port());
    for endpoint in [format!("https://localhost:{http}"), format!("grpcs://localhost:{grpc}")] {
        let builder = Client::builder().endpoint(&endpoint).deadline(Duration::from_secs(10));
        let client = builder.clone().ca(certificates.ca()).connect().await.unwrap();
        many(&client, 10).await;
        let error = builder.ca(certificates.other_ca()).connect().await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{endpoint}: {error}");
    }
    site.stop().await;
}
