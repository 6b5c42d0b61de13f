//! The arguments that name a server to ask.

use std::path::PathBuf;

use clap::Args as ClapArgs;

/// Which server to ask, and how to show who asks.
#[derive(Clone, Debug, ClapArgs)]
pub(crate) struct ServerArg {
    /// The server to ask, as http://127.0.0.1:7780 or https://HOST:PORT.
    // Parsed later: the parser of the command line repeats what it does not understand, and
    // somebody may write a password here.
    #[arg(long, value_name = "URL", env = "FRAZIL_SERVER", hide_env_values = true)]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) trust: TrustArg,
}

/// How to show a server who asks, and whom to trust.
#[derive(Clone, Debug, Default, ClapArgs)]
pub(crate) struct TrustArg {
    /// The file with the API key for the server; without it the key is taken from $FRAZIL_KEY.
    #[arg(long, value_name = "FILE", env = "FRAZIL_KEY_FILE")]
    pub(crate) key_file: Option<PathBuf>,
    /// Whom to trust with https, instead of the system's authorities: a file with certificates.
    #[arg(long, value_name = "FILE", env = "FRAZIL_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// Our own certificate, where the server asks for one.
    #[arg(long, value_name = "FILE", env = "FRAZIL_CERT", requires = "cert_key")]
    pub(crate) cert: Option<PathBuf>,
    /// The private key of --cert.
    #[arg(long, value_name = "FILE", env = "FRAZIL_CERT_KEY", requires = "cert")]
    pub(crate) cert_key: Option<PathBuf>,
}
