//! Reading and writing meta.

use zookeeper_client as zk;

use super::cell::{look, parse_meta, version_of, version_of_stat};
use super::failure::Failure;
use super::session::{Committed, Deadline};
use super::write::{Writer, first_set};
use crate::error::ErrorKind;
use crate::record::{Meta, Version, Versioned};
use crate::store::Put;

pub(super) async fn get(
    writer: &Writer<'_>,
    deadline: Deadline,
) -> Result<Option<Versioned<Meta>>, Failure> {
    let (node, _) = look(writer.session, writer.paths, &[], true, deadline).await?;
    node.as_ref().map(parse_meta).transpose()
}

/// Replaces the version that was read; `None`: it must not exist.
pub(super) async fn put(
    writer: &Writer<'_>,
    expected: Option<Version>,
    meta: &Meta,
    deadline: Deadline,
) -> Result<Put, Failure> {
    let data = serde_json::to_vec(meta)
        .map_err(|error| Failure::Definite(ErrorKind::InvalidConfig, error.to_string()))?;
    let path = writer.paths.meta();
    loop {
        let (node, _) = look(writer.session, writer.paths, &[], true, deadline).await?;
        if node.as_ref().map(version_of) != expected {
            return Ok(Put::Conflict);
        }
        let build = |_: i64, multi: &mut zk::MultiWriter<'_>| match &node {
            Some(node) => multi.add_set_data(&path, &data, Some(node.stat.version)),
            None => {
                multi.add_create(&path, b"", &writer.persistent())?;
                multi.add_set_data(&path, &data, None)
            }
        };
        match writer.session.commit(build, deadline).await? {
            Committed::Done(results) => {
                return Ok(Put::Done(version_of_stat(&first_set(&results)?)));
            }
            Committed::Refused(zk::Error::NoNode) => writer.make_parents(deadline).await?,
            Committed::Refused(_) => {}
        }
    }
}
