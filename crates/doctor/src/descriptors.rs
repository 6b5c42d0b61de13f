//! The limit of open files.

use rustix::process::{Resource, Rlimit, getrlimit};

use crate::finding::Finding;

const DESCRIPTORS: &str = "descriptors";
/// A server shares its descriptors out among these, whether or not it serves all of them.
const PROTOCOLS: u64 = 3;

/// The files that a server may have open.
#[derive(Clone, Copy, Debug)]
pub struct DescriptorNeeds {
    /// Connections of each protocol.
    pub max_connections: usize,
    /// What it keeps for itself.
    pub kept: usize,
}

/// Whether a server may open as many files as it needs: the check `descriptors`.
#[must_use]
pub fn descriptors(needs: DescriptorNeeds) -> Finding {
    judge(needs, getrlimit(Resource::Nofile))
}

fn judge(needs: DescriptorNeeds, limit: Rlimit) -> Finding {
    let kept = needs.kept as u64;
    let needed = (needs.max_connections as u64).saturating_mul(PROTOCOLS).saturating_add(kept);
    let shown = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |most| most.to_string());
    let (soft, hard) = (shown(limit.current), shown(limit.maximum));
    let detail =
        format!("{needed} are needed at the most, the limits are {soft} (soft) and {hard} (hard)");
    // A server raises the soft limit to the hard one by itself.
    match limit.maximum {
        Some(most) if most < needed => {
            let fewer = (most.saturating_sub(kept) / PROTOCOLS).max(1);
            Finding::warn(
                DESCRIPTORS,
                format!("{detail}: it will take {fewer} connections of each protocol"),
                format!(
                    "LimitNOFILE={needed} in its unit, ulimit -n {needed} as root before it, or \
                     --max-connections {fewer}"
                ),
            )
        }
        _ => Finding::ok(DESCRIPTORS, detail),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Status;

    #[test]
    fn the_hard_limit_counts() {
        let needs = DescriptorNeeds { max_connections: 10_000, kept: 64 };
        for (current, maximum, status) in [
            (Some(1024), Some(1024), Status::Warn),
            (Some(1024), Some(40_000), Status::Ok),
            (None, None, Status::Ok),
        ] {
            assert_eq!(judge(needs, Rlimit { current, maximum }).status, status);
        }
    }
}
