//! Writing meta.

use zookeeper_client as zk;

use super::cell::version_of_meta;
use super::failure::Failure;
use super::session::{Deadline, Sent};
use super::tree::{Tree, first_set};
use crate::error::ErrorKind;
use crate::record::{Meta, Version};
use crate::store::Put;

impl Tree {
    /// Replaces the version that was read; `None`: it must not exist.
    pub(super) async fn put_meta(
        &self,
        expected: Option<Version>,
        meta: &Meta,
        deadline: Deadline,
    ) -> Result<Put, Failure> {
        let data = serde_json::to_vec(meta)
            .map_err(|error| Failure::Definite(ErrorKind::InvalidConfig, error.to_string()))?;
        let path = self.paths.meta();
        loop {
            let read = self.snapshot(&[], true, deadline).await?;
            if read.meta_version() != expected || read.meta.is_some() != expected.is_some() {
                return Ok(Put::Conflict);
            }
            let build = |multi: &mut zk::MultiWriter<'_>| match &read.meta {
                Some(node) => multi.add_set_data(&path, &data, Some(node.stat.version)),
                None => {
                    multi.add_create(&path, b"", &self.persistent())?;
                    multi.add_set_data(&path, &data, None)
                }
            };
            match self.session.send(read.session, build, deadline).await? {
                Sent::Done(results) => {
                    let stat = first_set(&results)?;
                    self.told(&stat);
                    return Ok(Put::Done(version_of_meta(&stat, meta.incarnation)));
                }
                Sent::Refused(error) => self.refused(&error, deadline).await?,
            }
        }
    }
}
