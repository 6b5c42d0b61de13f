//! A leadership as the right to issue for a scope.

use frazil_coord::UnixMs;
use frazil_election::Proof;

use super::ScopeAuthority;

/// A leader elected with a window issues.
impl ScopeAuthority for Proof {
    fn is_valid(&self) -> bool {
        self.is_leader()
    }

    fn floor(&self) -> UnixMs {
        Self::floor(self)
    }

    fn horizon(&self) -> UnixMs {
        Self::horizon(self)
    }
}
