//! Whom to trust, and what to show, when a server is asked with TLS.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::args::TrustArg;
use crate::output::Failure;

pub(super) fn config(args: &TrustArg) -> Result<TlsConfig, Failure> {
    let trusted = match &args.ca {
        Some(path) => certificates(path)?,
        None => of_the_system()?,
    };
    let own = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => {
            check_pair(cert, key)?;
            Some(ClientCert::new_with_certs(&certificates(cert)?, private_key(key)?))
        }
        _ => None,
    };
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::new_with_certs(&trusted))
        .client_cert(own)
        .unversioned_rustls_crypto_provider(Arc::new(aws_lc_rs::default_provider()))
        .build())
}

/// What was wrong with a certificate, ours or the server's, if that is what went wrong.
pub(super) fn complaint(error: &ureq::Error) -> Option<String> {
    let why = match error {
        ureq::Error::Rustls(why) => why,
        ureq::Error::Io(error) => error.get_ref()?.downcast_ref::<rustls::Error>()?,
        _ => return None,
    };
    let is_about_trust = matches!(
        why,
        rustls::Error::InvalidCertificate(_)
            | rustls::Error::NoCertificatesPresented
            | rustls::Error::AlertReceived(_)
            | rustls::Error::InconsistentKeys(_)
    );
    is_about_trust.then(|| why.to_string())
}

/// Whether the server does not speak TLS at all.
pub(super) fn is_plain(error: &ureq::Error) -> bool {
    let why = match error {
        ureq::Error::Rustls(why) => Some(why),
        ureq::Error::Io(error) => error.get_ref().and_then(|why| why.downcast_ref()),
        _ => None,
    };
    matches!(why, Some(rustls::Error::InvalidMessage(_)))
}

fn of_the_system() -> Result<Vec<Certificate<'static>>, Failure> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(Failure::usage(
            "the system trusts no authority: install ca-certificates, or name one with --ca",
        ));
    }
    Ok(found.certs.iter().map(|cert| Certificate::from_der(cert).to_owned()).collect())
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, Failure> {
    let text = read(path)?;
    let items = parse_pem(&text).filter_map(Result::ok);
    let found: Vec<_> = items
        .filter_map(|item| match item {
            PemItem::Certificate(certificate) => Some(certificate),
            _ => None,
        })
        .collect();
    match found.is_empty() {
        true => Err(Failure::usage(format_args!("{path:?} has no certificate in PEM"))),
        false => Ok(found),
    }
}

/// The client panics over a pair that does not go together, so it never sees one.
fn check_pair(cert: &Path, key: &Path) -> Result<(), Failure> {
    with_pair(rustls::RootCertStore::empty(), cert, key).map(drop)
}

/// The same for who speaks something else than HTTP over TLS.
pub(crate) fn client_config(args: &TrustArg) -> Result<rustls::ClientConfig, Failure> {
    let trusted = match &args.ca {
        Some(path) => certificates(path)?,
        None => of_the_system()?,
    };
    let mut roots = rustls::RootCertStore::empty();
    let ders = trusted.iter().map(|cert| CertificateDer::from(cert.der().to_vec()));
    let (added, _) = roots.add_parsable_certificates(ders);
    if added == 0 {
        return Err(Failure::usage("none of the certificates of --ca can be trusted as one"));
    }
    match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => with_pair(roots, cert, key),
        _ => Ok(builder()?.with_root_certificates(roots).with_no_client_auth()),
    }
}

fn with_pair(
    roots: rustls::RootCertStore,
    cert: &Path,
    key: &Path,
) -> Result<rustls::ClientConfig, Failure> {
    let unreadable = |path: &Path, error: &dyn std::fmt::Display| {
        Failure::usage(format_args!("{path:?} cannot be used: {error}"))
    };
    let chain = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.map_err(|error| unreadable(cert, &error))?;
    let own = PrivateKeyDer::from_pem_file(key).map_err(|error| unreadable(key, &error))?;
    let builder = builder()?.with_root_certificates(roots);
    builder.with_client_auth_cert(chain, own).map_err(|error| {
        let why = "do not go together: --key must be the private key of --cert";
        Failure::usage(format_args!("{cert:?} and {key:?} {why} ({error})"))
    })
}

type Builder = rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>;

fn builder() -> Result<Builder, Failure> {
    rustls::ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::usage(format_args!("TLS cannot be spoken: {error}")))
}

fn private_key(path: &Path) -> Result<PrivateKey<'static>, Failure> {
    PrivateKey::from_pem(&read(path)?)
        .map_err(|_| Failure::usage(format_args!("{path:?} has no private key in PEM")))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::usage(format_args!("{path:?} cannot be read: {error}")))
}
