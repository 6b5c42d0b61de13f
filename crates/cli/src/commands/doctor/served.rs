//! A server that runs, asked as the arguments say.

use std::time::Duration;

use frazil_doctor::{Asked, Finding, apart};

use crate::args::ServerArg;
use crate::output::Failure;
use crate::remote::Server;

/// A server answers within this, or is not there. It is asked three times.
const PATIENCE: Duration = Duration::from_secs(4);

pub(super) async fn look(url: &str, args: &ServerArg) -> Vec<Finding> {
    let (url, args) = (url.to_owned(), args.clone());
    apart("server", move || match Server::new(&url, &args) {
        Ok(server) => frazil_doctor::server(&server),
        Err(failure) => {
            let fix = "correct --server, --key-file, --ca, --cert or --key";
            vec![Finding::fail("server", said(failure), fix)]
        }
    })
    .await
}

impl Asked for Server {
    fn base(&self) -> &str {
        self.base()
    }

    fn get(&self, path: &str) -> Result<(u16, String), String> {
        self.look(path, PATIENCE).map_err(said)
    }
}

fn said(failure: Failure) -> String {
    match failure {
        Failure::Message(_, message) => message,
        _ => "the server could not be asked".to_owned(),
    }
}
