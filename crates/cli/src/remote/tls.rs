//! The trust in a server, and our own certificate for it.

use std::path::Path;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::args::TrustArg;
use crate::output::Failure;

/// Says in the words of the command line what is wrong with the files, before anybody uses them.
pub(super) fn check(args: &TrustArg) -> Result<(), Failure> {
    client_config(args).map(drop)
}

/// How TLS is spoken by who does not speak through the client.
pub(crate) fn client_config(args: &TrustArg) -> Result<rustls::ClientConfig, Failure> {
    let trusted = match &args.ca {
        Some(path) => certificates(path)?,
        None => of_the_system()?,
    };
    let mut roots = rustls::RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(trusted);
    if added == 0 {
        return Err(Failure::usage("none of the certificates of --ca can be trusted as one"));
    }
    match (&args.cert, &args.cert_key) {
        (Some(cert), Some(key)) => with_pair(roots, cert, key),
        _ => Ok(builder()?.with_root_certificates(roots).with_no_client_auth()),
    }
}

fn of_the_system() -> Result<Vec<CertificateDer<'static>>, Failure> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(Failure::usage(
            "the system trusts no authority: install ca-certificates, or name one with --ca",
        ));
    }
    Ok(found.certs)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let text = std::fs::read(path)
        .map_err(|error| Failure::usage(format_args!("{path:?} cannot be read: {error}")))?;
    let found: Vec<_> = CertificateDer::pem_slice_iter(&text).filter_map(Result::ok).collect();
    match found.is_empty() {
        true => Err(Failure::usage(format_args!("{path:?} has no certificate in PEM"))),
        false => Ok(found),
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
        let why = "do not go together: --cert-key must be the private key of --cert";
        Failure::usage(format_args!("{cert:?} and {key:?} {why} ({error})"))
    })
}

type Builder = rustls::ConfigBuilder<rustls::ClientConfig, rustls::WantsVerifier>;

fn builder() -> Result<Builder, Failure> {
    rustls::ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| Failure::usage(format_args!("TLS cannot be spoken: {error}")))
}
