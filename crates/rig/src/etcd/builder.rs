//! The configuration with which an etcd member starts.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use super::Etcd;
use super::member::{Access, Ports, data_directory};
use crate::certificates::Certificates;
use crate::daemon::Daemon;
use crate::directory;
use crate::ports::{free_port, retry_on_clash};
use crate::process::Recipe;
use crate::program;

/// Half of etcd's default: fail-over is quick, and a busy machine still sends its heartbeats.
const TIMING: [&str; 4] = ["--heartbeat-interval", "50", "--election-timeout", "500"];

/// An etcd member to be started; made by [`Etcd::builder`].
#[derive(Debug, Clone, Default)]
pub struct EtcdBuilder {
    flags: Vec<OsString>,
    access: Access,
    auth: Option<Credentials>,
}

#[derive(Debug, Clone)]
struct Credentials {
    user: String,
    password: String,
}

/// A member's place in its cluster.
#[derive(Debug, Clone)]
pub(super) struct Place {
    pub(super) name: String,
    pub(super) ports: Ports,
}

impl EtcdBuilder {
    /// Adds a flag, such as `--quota-backend-bytes=16777216`.
    #[must_use]
    pub fn flag(mut self, flag: impl Into<OsString>) -> Self {
        self.flags.push(flag.into());
        self
    }

    /// Makes the member speak TLS to clients, and ask for no certificate. The certificates must
    /// live as long as the server is to be restarted.
    #[must_use]
    pub fn tls(mut self, certificates: &Certificates) -> Self {
        self.access.tls = true;
        self.access.tls_flags = vec!["--cacert".into(), certificates.ca().into()];
        self.flag("--cert-file")
            .flag(certificates.server_cert())
            .flag("--key-file")
            .flag(certificates.server_key())
    }

    /// Like [`EtcdBuilder::tls`], and turns away clients without a certificate of the CA.
    #[must_use]
    pub fn mutual_tls(self, certificates: &Certificates) -> Self {
        let mut builder = self.tls(certificates);
        builder.access.tls_flags.extend([
            "--cert".into(),
            certificates.client_cert().into(),
            "--key".into(),
            certificates.client_key().into(),
        ]);
        builder.flag("--client-cert-auth").flag("--trusted-ca-file").flag(certificates.ca())
    }

    /// Asks clients for a user with a password, who then has the role `root`.
    /// [`Etcd::etcdctl`] gives them.
    #[must_use]
    pub fn with_auth(mut self, user: impl Into<String>, password: impl Into<String>) -> Self {
        self.auth = Some(Credentials { user: user.into(), password: password.into() });
        self
    }

    /// Starts the member and waits until it is healthy.
    ///
    /// # Errors
    ///
    /// If etcd is not installed or does not start; the message has the end of its log.
    pub fn start(&self) -> io::Result<Etcd> {
        let mut etcd = retry_on_clash(|| {
            let place = Place::new("single")?;
            let cluster = place.entry();
            let etcd = self.prepare(place, cluster)?;
            etcd.restart()?;
            Ok(etcd)
        })?;
        if let Some(credentials) = &self.auth {
            credentials.demand(&etcd)?;
            etcd.access.user = Some(credentials.pair());
        }
        Ok(etcd)
    }

    /// A member that does not run yet; `cluster` has the entries of all members.
    pub(super) fn prepare(&self, place: Place, cluster: String) -> io::Result<Etcd> {
        let directory = directory::make("etcd-")?;
        let Place { name, ports } = place;
        let program = program::find("etcd")?;
        let mut arguments: Vec<OsString> = TIMING.iter().map(OsString::from).collect();
        let client_url = format!("{}://127.0.0.1:{}", self.access.scheme(), ports.client);
        for (flag, value) in [
            ("--name", name.as_str()),
            ("--logger", "zap"),
            ("--log-level", "warn"),
            ("--listen-client-urls", &client_url),
            ("--advertise-client-urls", &client_url),
            ("--listen-peer-urls", &ports.peer_url()),
            ("--initial-advertise-peer-urls", &ports.peer_url()),
            ("--initial-cluster", &cluster),
        ] {
            arguments.extend([flag.into(), value.into()]);
        }
        arguments.extend(["--data-dir".into(), data_directory(&directory).into()]);
        arguments.extend(no_fsync(&program).map(OsString::from));
        arguments.extend_from_slice(&self.flags);
        let recipe = Recipe {
            program,
            arguments,
            environment: Vec::new(),
            log: directory.path().join("log"),
            port: ports.client,
        };
        let access = self.access.clone();
        Ok(Etcd { daemon: Daemon::new(recipe), directory, ports, name, cluster, access })
    }
}

impl Place {
    pub(super) fn new(name: impl Into<String>) -> io::Result<Self> {
        let ports = Ports { client: free_port()?, peer: free_port()? };
        Ok(Self { name: name.into(), ports })
    }

    /// The member's part of `--initial-cluster`.
    pub(super) fn entry(&self) -> String {
        format!("{}={}", self.name, self.ports.peer_url())
    }
}

impl Credentials {
    /// etcd wants a user `root` before it turns authentication on.
    fn demand(&self, etcd: &Etcd) -> io::Result<()> {
        etcd.etcdctl(&["role", "add", "root"])?;
        let root = Self { user: "root".to_owned(), password: self.password.clone() };
        root.add(etcd)?;
        if self.user != root.user {
            self.add(etcd)?;
        }
        etcd.etcdctl(&["auth", "enable"]).map(drop)
    }

    fn add(&self, etcd: &Etcd) -> io::Result<()> {
        etcd.etcdctl(&["user", "add", &self.pair()])?;
        etcd.etcdctl(&["user", "grant-role", &self.user, "root"]).map(drop)
    }

    fn pair(&self) -> String {
        format!("{}:{}", self.user, self.password)
    }
}

/// The flag that saves the syncs, if this version knows it (3.4.23 does not). The data still
/// outlives the process: the kernel keeps what was written.
fn no_fsync(etcd: &Path) -> Option<&'static str> {
    const FLAG: &str = "--unsafe-no-fsync";
    static KNOWN: OnceLock<bool> = OnceLock::new();
    let known = KNOWN.get_or_init(|| {
        program::run(Command::new(etcd).arg("--help")).is_ok_and(|help| help.contains(FLAG))
    });
    known.then_some(FLAG)
}
