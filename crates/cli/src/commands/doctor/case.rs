//! The settings to check, as a server would take them from its configuration.

use frazil::coord::{Namespace, StoreUrl, Timing};
use frazil::{fixed_timing, fixed_worker};
use frazil_id::Layout;

use crate::args::ServeArgs;
use crate::config::{store_url, timing};

/// A node as it would be started.
pub(super) struct Case {
    pub(super) url: StoreUrl,
    pub(super) namespace: Namespace,
    pub(super) layout: Layout,
    /// As asked for.
    pub(super) timing: Timing,
    pub(super) workers: Option<(u32, u32)>,
    /// The flags that lead another command to the same namespace.
    pub(super) flags: String,
}

impl Case {
    /// What the settings say, or what is wrong with the store's URL.
    pub(super) fn of(args: &ServeArgs) -> Result<Self, String> {
        let url = store_url(args)?;
        Ok(Self {
            flags: flags(args, &url),
            url,
            namespace: args.place.namespace.clone(),
            layout: args.layout.layout,
            timing: timing(args),
            workers: args.workers.workers,
        })
    }

    /// The durations that leases will have.
    pub(super) fn effective_timing(&self) -> Timing {
        match fixed_worker(&self.url) {
            Some(_) => fixed_timing(&self.layout),
            None => self.timing,
        }
    }

    /// A command on the same namespace.
    pub(super) fn command(&self, command: &str) -> String {
        format!("frazil {command}{}", self.flags)
    }
}

fn flags(args: &ServeArgs, url: &StoreUrl) -> String {
    let mut flags = String::new();
    let is_named = args.place.store.is_some() || args.worker.is_some();
    // A URL with a login is not printed as it is, so a copy of it would not work.
    if is_named && url.user.is_none() && url.password.is_none() {
        let text = url.to_string();
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "+:/.,-_[]%=".contains(c));
        flags += &if is_plain { format!(" --store {text}") } else { format!(" --store '{text}'") };
    }
    if args.place.namespace != Namespace::default() {
        flags += &format!(" --namespace {}", args.place.namespace);
    }
    flags
}
