//! The cause of a failure between this command and a server, found among the causes of an error.

use std::error::Error as _;
use std::io;

use frazil_client::Error;

type Cause<'a> = &'a (dyn std::error::Error + 'static);

/// What was wrong with a certificate, ours or the server's, if that is what went wrong.
pub(super) fn about_trust(error: &Error) -> Option<String> {
    let why = of_tls(error)?;
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
pub(super) fn is_plain(error: &Error) -> bool {
    matches!(of_tls(error), Some(rustls::Error::InvalidMessage(_)))
}

/// Whether the connection broke, for no reason that TLS knows of.
pub(super) fn is_broken_off(error: &Error) -> bool {
    matches!(error, Error::Unreachable { .. }) && of_tls(error).is_none()
}

/// The words for it: the deepest cause has the reason, the others say what was done meanwhile.
pub(super) fn cause(error: &Error) -> String {
    match error {
        // What was not understood, or is of no use, is said by themselves.
        Error::Broken { .. } | Error::Invalid { .. } => format!("{error:#}"),
        _ => causes(error).last().map_or_else(|| error.to_string(), ToString::to_string),
    }
}

fn of_tls(error: &Error) -> Option<&rustls::Error> {
    causes(error).find_map(|cause| {
        let wrapped = || cause.downcast_ref::<io::Error>()?.get_ref()?.downcast_ref();
        cause.downcast_ref().or_else(wrapped)
    })
}

fn causes(error: &Error) -> impl Iterator<Item = Cause<'_>> {
    std::iter::successors(error.source(), |cause| (*cause).source())
}
