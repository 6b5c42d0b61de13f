//! The configuration with which a ZooKeeper server starts.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::ZooKeeper;
use super::server::Ports;
use crate::certificates::Certificates;
use crate::daemon::Daemon;
use crate::directory;
use crate::ports::{free_port, retry_on_clash};
use crate::process::Recipe;
use crate::program;

/// Where Debian puts ZooKeeper; its manifest names the other jars.
const JAR: &str = "/usr/share/java/zookeeper.jar";

/// What Debian's manifest forgets: TLS takes the netty jars, and the log takes the last. It comes
/// with the same packages; if it is missing, only the exit status tells of a failure.
const MORE_JARS: &str = "/usr/share/java/netty-codec.jar:/usr/share/java/netty-resolver.jar\
    :/usr/share/java/slf4j-simple.jar";

/// A quick start and little memory, for several on one small machine. Without forced syncs: what
/// was written still outlives a killed process, and the tests kill no machines.
const JAVA: [&str; 6] = [
    "-Xmx128m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dzookeeper.forceSync=no",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-Dzookeeper.jmx.log4j.disable=true",
];

const MAIN_CLASS: &str = "org.apache.zookeeper.server.quorum.QuorumPeerMain";

const CONFIG: &str = "tickTime=500
initLimit=20
syncLimit=6
minSessionTimeout=1000
maxSessionTimeout=60000
maxClientCnxns=0
admin.enableServer=false
clientPortAddress=127.0.0.1
4lw.commands.whitelist=*
";

/// A ZooKeeper server to be started; made by [`ZooKeeper::builder`].
#[derive(Debug, Clone, Default)]
pub struct ZooKeeperBuilder {
    lines: Vec<String>,
    tls: Option<Stores>,
}

#[derive(Debug, Clone)]
struct Stores {
    /// The server's key and certificate.
    key: Result<PathBuf, String>,
    trust: PathBuf,
    client_auth: &'static str,
}

/// A server's place in its ensemble.
#[derive(Debug, Clone, Copy)]
pub(super) struct EnsembleMember {
    /// From 1, as ZooKeeper wants it.
    pub(super) id: usize,
}

impl ZooKeeperBuilder {
    /// Adds a line to the configuration file, such as `jute.maxbuffer=1024`.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Adds a port with TLS, which asks for no certificate; [`ZooKeeper::port`] gives this port.
    /// The certificates must live as long as the server is to be restarted.
    #[must_use]
    pub fn tls(self, certificates: &Certificates) -> Self {
        self.stores(certificates, "none")
    }

    /// Like [`ZooKeeperBuilder::tls`], and turns away clients without a certificate of the CA.
    #[must_use]
    pub fn mutual_tls(self, certificates: &Certificates) -> Self {
        self.stores(certificates, "need")
    }

    /// Starts the server and waits until it serves.
    ///
    /// # Errors
    ///
    /// If ZooKeeper is not installed or does not start; the message has the end of its log.
    pub fn start(&self) -> io::Result<ZooKeeper> {
        retry_on_clash(|| {
            let zookeeper = self.prepare(None)?;
            zookeeper.restart()?;
            Ok(zookeeper)
        })
    }

    /// A server that does not run yet.
    pub(super) fn prepare(&self, seat: Option<EnsembleMember>) -> io::Result<ZooKeeper> {
        if !Path::new(JAR).is_file() {
            return Err(program::missing("zookeeper"));
        }
        let directory = directory::make("zookeeper-")?;
        let data = directory.path().join("data");
        fs::create_dir(&data)?;
        if let Some(seat) = seat {
            fs::write(data.join("myid"), seat.id.to_string())?;
        }
        let secure = self.tls.as_ref().map(|_| free_port()).transpose()?;
        let ports = Ports { plain: free_port()?, secure };
        let config = directory.path().join("zoo.cfg");
        fs::write(&config, self.config(ports, &data)?)?;
        let mut arguments: Vec<OsString> = JAVA.iter().map(OsString::from).collect();
        let class_path = format!("{JAR}:{MORE_JARS}");
        arguments.extend(["-cp".into(), class_path.into(), MAIN_CLASS.into(), config.into()]);
        let program = program::find("java")?;
        let recipe = Recipe {
            program,
            arguments,
            environment: Vec::new(),
            log: directory.path().join("log"),
            port: ports.plain,
        };
        Ok(ZooKeeper { daemon: Daemon::new(recipe), _directory: directory, ports })
    }

    fn config(&self, ports: Ports, data: &Path) -> io::Result<String> {
        let mut config = CONFIG.to_owned();
        config += &format!("dataDir={}\nclientPort={}\n", data.display(), ports.plain);
        if let (Some(stores), Some(secure)) = (&self.tls, ports.secure) {
            config += &stores.lines(secure)?;
        }
        for line in &self.lines {
            config += &format!("{line}\n");
        }
        Ok(config)
    }

    fn stores(mut self, certificates: &Certificates, client_auth: &'static str) -> Self {
        let key = certificates.server_bundle().map_err(|error| error.to_string());
        let trust = certificates.ca().to_owned();
        self.tls = Some(Stores { key, trust, client_auth });
        self
    }
}

impl Stores {
    fn lines(&self, secure: u16) -> io::Result<String> {
        let key = self.key.as_ref().map_err(|error| io::Error::other(error.clone()))?;
        Ok(format!(
            "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory\n\
             secureClientPort={secure}\n\
             secureClientPortAddress=127.0.0.1\n\
             ssl.keyStore.location={}\nssl.keyStore.type=PEM\n\
             ssl.trustStore.location={}\nssl.trustStore.type=PEM\n\
             ssl.clientAuth={}\n",
            key.display(),
            self.trust.display(),
            self.client_auth
        ))
    }
}
