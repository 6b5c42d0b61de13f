//! Are there file descriptors for as many connections as a server takes?

use frazil_server::Limits;
use rustix::process::{Resource, Rlimit, getrlimit};

use super::report::Row;
use crate::args::DoctorArgs;

const CHECK: &str = "descriptors";
/// What a server keeps for its store, its probes and its log.
const KEPT: u64 = 64;

pub(super) fn look(args: &DoctorArgs) -> Row {
    let protocols = [args.http, args.grpc, args.resp].iter().filter(|a| a.0.is_some()).count();
    let connections = Limits::default().max_connections as u64 * protocols as u64;
    judge(connections + KEPT, getrlimit(Resource::Nofile))
}

fn judge(needed: u64, limit: Rlimit) -> Row {
    let shown = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |most| most.to_string());
    let (soft, hard) = (shown(limit.current), shown(limit.maximum));
    let detail =
        format!("{needed} are needed at the most, the limits are {soft} (soft) and {hard} (hard)");
    // A server raises the soft limit to the hard one by itself.
    match limit.maximum {
        Some(most) if most < needed => Row::warn(
            CHECK,
            format!("{detail}: it will take fewer connections"),
            format!("LimitNOFILE={needed} in its unit, or ulimit -n {needed} as root before it"),
        ),
        _ => Row::ok(CHECK, detail),
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::Status;
    use super::*;

    #[test]
    fn the_hard_limit_counts() {
        for (current, maximum, status) in [
            (Some(1024), Some(1024), Status::Warn),
            (Some(1024), Some(40_000), Status::Ok),
            (None, None, Status::Ok),
        ] {
            assert_eq!(judge(30_064, Rlimit { current, maximum }).status(), status);
        }
    }
}
