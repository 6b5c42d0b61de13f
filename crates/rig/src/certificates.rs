//! Certificates for TLS tests, made by `openssl` in a throw-away directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::{directory, program};

/// How long they are valid, in days: longer than any test run.
const VALID_DAYS: &str = "2";

/// A CA, a server's and a client's certificate signed by it, and a CA that signed neither.
///
/// The server's is for `127.0.0.1` and `localhost`. Keys are PKCS#8 in PEM.
#[derive(Debug)]
pub struct Certificates {
    directory: TempDir,
    ca: PathBuf,
    other_ca: PathBuf,
    server_cert: PathBuf,
    server_key: PathBuf,
    client_cert: PathBuf,
    client_key: PathBuf,
}

impl Certificates {
    /// Makes a new set, unlike any other.
    ///
    /// # Errors
    ///
    /// If `openssl` is not installed or fails.
    pub fn generate() -> io::Result<Self> {
        let directory = directory::make("tls-")?;
        let path = |name: &str| directory.path().join(name);
        let (ca, other_ca) = (path("ca.pem"), path("other-ca.pem"));
        authority("frazil test CA", &path("ca.key"), &ca)?;
        authority("unrelated test CA", &path("other-ca.key"), &other_ca)?;
        let leaf = |name: &str, extensions: &str| {
            let signer = Signer { cert: &ca, key: &path("ca.key") };
            signer.sign(name, &directory, extensions)
        };
        // etcd's own gateway shows the server's certificate as a client.
        let (server_cert, server_key) = leaf(
            "server",
            "subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n",
        )?;
        let (client_cert, client_key) = leaf("client", "extendedKeyUsage=clientAuth\n")?;
        Ok(Self { directory, ca, other_ca, server_cert, server_key, client_cert, client_key })
    }

    /// The certificate of the CA that signed the server's and the client's.
    #[must_use]
    pub fn ca(&self) -> &Path {
        &self.ca
    }

    /// The certificate of a CA that signed none of these.
    #[must_use]
    pub fn other_ca(&self) -> &Path {
        &self.other_ca
    }

    /// The server's certificate.
    #[must_use]
    pub fn server_cert(&self) -> &Path {
        &self.server_cert
    }

    /// The server's private key.
    #[must_use]
    pub fn server_key(&self) -> &Path {
        &self.server_key
    }

    /// The client's certificate; its common name is `client`.
    #[must_use]
    pub fn client_cert(&self) -> &Path {
        &self.client_cert
    }

    /// The client's private key.
    #[must_use]
    pub fn client_key(&self) -> &Path {
        &self.client_key
    }

    /// The server's key and certificate in one file, as ZooKeeper wants them.
    pub(crate) fn server_bundle(&self) -> io::Result<PathBuf> {
        let bundle = self.directory.path().join("server-bundle.pem");
        let key = fs::read_to_string(&self.server_key)?;
        fs::write(&bundle, key + &fs::read_to_string(&self.server_cert)?)?;
        Ok(bundle)
    }
}

fn authority(name: &str, key: &Path, cert: &Path) -> io::Result<()> {
    make_key(key)?;
    let mut command = openssl()?;
    command.args(["req", "-x509", "-new", "-days", VALID_DAYS, "-subj"]).arg(format!("/CN={name}"));
    command.args(["-addext", "keyUsage=critical,keyCertSign,cRLSign", "-key"]).arg(key);
    program::run(command.arg("-out").arg(cert)).map(drop)
}

struct Signer<'a> {
    cert: &'a Path,
    key: &'a Path,
}

impl Signer<'_> {
    /// Makes a key and a certificate for it, in files named after `name`.
    fn sign(
        &self,
        name: &str,
        directory: &TempDir,
        extensions: &str,
    ) -> io::Result<(PathBuf, PathBuf)> {
        let path = |ending: &str| directory.path().join(format!("{name}.{ending}"));
        let (cert, key, request, extra) = (path("pem"), path("key"), path("csr"), path("ext"));
        make_key(&key)?;
        let mut ask = openssl()?;
        ask.args(["req", "-new", "-subj"]).arg(format!("/CN={name}"));
        program::run(ask.arg("-key").arg(&key).arg("-out").arg(&request))?;
        fs::write(&extra, format!("basicConstraints=CA:FALSE\n{extensions}"))?;
        let mut sign = openssl()?;
        sign.args(["x509", "-req", "-days", VALID_DAYS, "-CAcreateserial", "-in"]).arg(&request);
        sign.arg("-CA").arg(self.cert).arg("-CAkey").arg(self.key);
        program::run(sign.arg("-extfile").arg(&extra).arg("-out").arg(&cert))?;
        Ok((cert, key))
    }
}

/// An elliptic curve key, made in no time; `genpkey` writes PKCS#8.
fn make_key(key: &Path) -> io::Result<()> {
    let mut command = openssl()?;
    command.args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]);
    program::run(command.arg("-out").arg(key)).map(drop)
}

fn openssl() -> io::Result<Command> {
    Ok(Command::new(program::find("openssl")?))
}
