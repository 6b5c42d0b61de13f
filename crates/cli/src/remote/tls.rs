//! Whom to trust, and what to show, when a server is asked with TLS.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use ureq::tls::{Certificate, ClientCert, PemItem, PrivateKey, RootCerts, TlsConfig, parse_pem};

use crate::args::ServerArg;
use crate::output::Failure;

pub(super) fn config(args: &ServerArg) -> Result<TlsConfig, Failure> {
    let trusted = match &args.ca {
        Some(path) => certificates(path)?,
        None => of_the_system()?,
    };
    let own = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => {
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

fn private_key(path: &Path) -> Result<PrivateKey<'static>, Failure> {
    PrivateKey::from_pem(&read(path)?)
        .map_err(|_| Failure::usage(format_args!("{path:?} has no private key in PEM")))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::usage(format_args!("{path:?} cannot be read: {error}")))
}
