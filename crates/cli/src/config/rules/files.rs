//! The files that a configuration names.

use std::fs::{self, File};
use std::path::Path;

use frazil::coord::StoreUrl;
use frazil_server::keys::KeySource;

use super::Findings;

/// The options of a store's URL that name files.
const URL_FILES: [&str; 4] = ["password_file", "ca", "cert", "key"];

impl Findings<'_> {
    /// Looks whether they are there, can be read, and make sense.
    pub(super) fn files(&mut self) {
        let args = &self.settings.args;
        let keys = args.keys.as_ref().and_then(KeySource::file).map(Path::to_owned);
        let named = [
            ("tls.cert", &args.tls.tls_cert),
            ("tls.key", &args.tls.tls_key),
            ("tls.client_ca", &args.tls.tls_client_ca),
            ("auth.keys", &keys),
            ("peer.key_file", &args.peer.peer_key_file),
            ("peer.ca", &args.peer.peer_ca),
        ];
        let mut are_there = true;
        for (path, file) in named {
            if let Some(why) = file.as_deref().and_then(trouble) {
                self.add(&[path], why);
                are_there = false;
            }
        }
        if !are_there {
            return;
        }
        if let Some(Err(error)) = keys.as_deref().map(frazil_server::keys::read) {
            error.problems.into_iter().for_each(|why| self.add(&["auth.keys"], why));
        }
        if let Some(Err(error)) = super::super::server::tls_files(args).map(|files| files.check()) {
            self.add(&["tls.cert", "tls.key"], format!("{error:#}"));
        }
    }

    /// The same for those that the store's URL names.
    pub(super) fn store_files(&mut self, url: &StoreUrl) {
        let args = &self.settings.args;
        for option in URL_FILES {
            let file = url.option(option).map(Path::new);
            let is_ours = file.is_some() && file == args.store_password_file.as_deref();
            let path = if is_ours { "store.password_file" } else { "store.url" };
            if let Some(why) = file.and_then(trouble) {
                self.add(&[path], if is_ours { why } else { format!("{option}: {why}") });
            }
        }
    }
}

fn trouble(path: &Path) -> Option<String> {
    let name = path.display();
    match fs::metadata(path) {
        Ok(about) if about.is_dir() => Some(format!("{name} is a directory: name the file in it")),
        // To open a pipe may wait for ever.
        Ok(about) if !about.is_file() => None,
        Ok(_) => File::open(path).err().map(|error| format!("{name} cannot be read: {error}")),
        Err(error) => Some(format!("{name} cannot be used: {error}")),
    }
}
