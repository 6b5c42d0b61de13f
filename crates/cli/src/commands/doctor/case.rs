//! What is to be examined, as a server would take it from its flags.

use frazil::coord::{BadUrl, Namespace, StoreUrl, Timing};
use frazil::{fixed_timing, fixed_worker, store_or_default};
use frazil_id::Layout;

use super::report::Row;
use crate::args::DoctorArgs;

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
    /// What the flags say, or what is wrong with the store's URL.
    pub(super) fn of(args: &DoctorArgs) -> Result<Self, Row> {
        let fixed = args.worker.map(|worker| format!("static:{worker}"));
        let named = fixed.as_deref().or(args.place.named());
        let url: Option<StoreUrl> =
            named.map(str::parse).transpose().map_err(|error: BadUrl| {
                let fix = "write --store as `frazil doctor --help` shows";
                Row::fail("store", error.to_string(), fix)
            })?;
        let flags = flags(args, url.as_ref());
        let url = store_or_default(url).ok_or_else(|| {
            Row::fail("store", "there is no state directory", "set FRAZIL_STATE_DIR or HOME")
        })?;
        Ok(Self {
            url,
            namespace: args.place.namespace.clone(),
            layout: args.layout.layout,
            timing: Timing {
                ttl: args.ttl,
                heartbeat: args.heartbeat,
                outage_budget: args.outage_budget,
            },
            workers: args.workers.workers,
            flags,
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

fn flags(args: &DoctorArgs, url: Option<&StoreUrl>) -> String {
    let mut flags = String::new();
    // A URL with a login is not printed as it is, so a copy of it would not work.
    if let Some(url) = url.filter(|url| url.user.is_none() && url.password.is_none()) {
        let text = url.to_string();
        let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "+:/.,-_[]%=".contains(c));
        flags += &if is_plain { format!(" --store {text}") } else { format!(" --store '{text}'") };
    }
    if args.place.namespace != Namespace::default() {
        flags += &format!(" --namespace {}", args.place.namespace);
    }
    flags
}
