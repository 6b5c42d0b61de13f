//! Removing elections that nobody holds any more.

use frazil_coord::time::unix_ms;
use frazil_coord::{Error, Forgotten, Group, Leasing, Slot};

use super::Elections;

impl Elections {
    /// Removes what the store knows of an election that nobody leads, or led within the last seconds.
    /// The token of the next leader is larger all the same, whatever clocks show. What `frazil elect
    /// --every` remembers of it is gone.
    ///
    /// # Errors
    /// If the store does not answer.
    pub async fn forget(&self, name: &str) -> Result<Forgotten, Error> {
        match Slot::named(Group::Elections, name) {
            Ok(slot) => self.store().forget_finished(&slot, unix_ms()).await,
            Err(_) => Ok(Forgotten::Unknown),
        }
    }
}
