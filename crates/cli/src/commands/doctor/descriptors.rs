//! Are there file descriptors for as many connections as a server takes?

use frazil_server::DESCRIPTORS_KEPT;
use rustix::process::{Resource, Rlimit, getrlimit};

use super::report::Row;

const CHECK: &str = "descriptors";
/// A server shares its descriptors out among these, whether or not it serves all of them.
const PROTOCOLS: u64 = 3;

pub(super) fn look(max_connections: usize) -> Row {
    let connections = (max_connections as u64).saturating_mul(PROTOCOLS);
    let needed = connections.saturating_add(DESCRIPTORS_KEPT as u64);
    judge(needed, getrlimit(Resource::Nofile))
}

fn judge(needed: u64, limit: Rlimit) -> Row {
    let shown = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |most| most.to_string());
    let (soft, hard) = (shown(limit.current), shown(limit.maximum));
    let detail =
        format!("{needed} are needed at the most, the limits are {soft} (soft) and {hard} (hard)");
    // A server raises the soft limit to the hard one by itself.
    match limit.maximum {
        Some(most) if most < needed => {
            let kept = DESCRIPTORS_KEPT as u64;
            let fewer = (most.saturating_sub(kept) / PROTOCOLS).max(1);
            Row::warn(
                CHECK,
                format!("{detail}: it will take {fewer} connections of each protocol"),
                format!(
                    "LimitNOFILE={needed} in its unit, ulimit -n {needed} as root before it, or \
                     --max-connections {fewer}"
                ),
            )
        }
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
