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
    let entry = serde_json::to_value(KeyEntry::of(&key, "shop", vec![Role::Ids])).unwrap();
    let lines =
        entry.as_object().unwrap().iter().map(|(name, value)| format!("{name} = {value}\n"));
    fs::write(&keys, format!("[[key]]\n{}", lines.collect::<String>())).unwrap();
    fs::write(&file, format!("{}\n", key.text())).unwrap();
    let site = Site::start_with(|config| config.keys = Some(keys)).await;
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

#[tokio::test]
async fn tls_is_spoken_with_whom_the_authority_vouches_for_alone() {
    let certificates = Certificates::generate().unwrap();
    let site = Site::start_with(|config| {
        config.tls = Some(TlsFiles {
            cert: certificates.server_cert().to_owned(),
            key: certificates.server_key().to_owned(),
            client_ca: None,
        });
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
