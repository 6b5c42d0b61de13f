//! Requests with the bodies that the protocol has for them, and what their answers hold.

use crate::config::Login;
use crate::error::Error;
use crate::jute::{Decoder, Encoder};
use crate::node::{Acl, CreateMode, Stat};

/// The numbers of the requests.
pub(crate) mod opcode {
    pub(crate) const DELETE: i32 = 2;
    pub(crate) const EXISTS: i32 = 3;
    pub(crate) const GET_DATA: i32 = 4;
    pub(crate) const SET_DATA: i32 = 5;
    pub(crate) const SET_ACL: i32 = 7;
    pub(crate) const GET_CHILDREN: i32 = 8;
    pub(crate) const SYNC: i32 = 9;
    pub(crate) const PING: i32 = 11;
    pub(crate) const CHECK: i32 = 13;
    pub(crate) const MULTI: i32 = 14;
    /// In answers to a multi alone: without the state of the node.
    pub(crate) const CREATE: i32 = 1;
    pub(crate) const CREATE2: i32 = 15;
    pub(crate) const REMOVE_WATCHES: i32 = 18;
    pub(crate) const MULTI_READ: i32 = 22;
    pub(crate) const AUTH: i32 = 100;
    pub(crate) const SET_WATCHES2: i32 = 105;
    pub(crate) const ADD_WATCH: i32 = 106;
    pub(crate) const CLOSE_SESSION: i32 = -11;
    /// In answers to a multi alone.
    pub(crate) const ERROR: i32 = -1;
}

/// A request without its number among those of the connection.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) opcode: i32,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn new(opcode: i32, write: impl FnOnce(&mut Encoder)) -> Self {
        let mut body = Encoder::default();
        write(&mut body);
        Self { opcode, body: body.into_bytes() }
    }

    pub(crate) fn create(path: &str, data: &[u8], mode: CreateMode, acl: &[Acl]) -> Self {
        Self::new(opcode::CREATE2, |body| create(body, path, data, mode, acl))
    }

    pub(crate) fn set_data(path: &str, data: &[u8], version: Option<i32>) -> Self {
        Self::new(opcode::SET_DATA, |body| set_data(body, path, data, version))
    }

    pub(crate) fn set_acl(path: &str, acl: &[Acl]) -> Self {
        Self::new(opcode::SET_ACL, |body| {
            Acl::encode_all(acl, body.text(path));
            body.int(ANY_VERSION);
        })
    }

    pub(crate) fn delete(path: &str, version: Option<i32>) -> Self {
        Self::new(opcode::DELETE, |body| named(body, path, version))
    }

    /// Reads what is at a path, without a watch.
    pub(crate) fn read(opcode: i32, path: &str) -> Self {
        Self::new(opcode, |body| read(body, path))
    }

    pub(crate) fn sync(path: &str) -> Self {
        Self::new(opcode::SYNC, |body| {
            body.text(path);
        })
    }

    pub(crate) fn auth(login: &Login) -> Self {
        Self::new(opcode::AUTH, |body| {
            let secret = format!("{}:{}", login.user, login.password);
            body.int(0).text("digest").bytes(secret.as_bytes());
        })
    }

    /// A watch of a node and of all below it.
    pub(crate) fn add_watch(path: &str) -> Self {
        const PERSISTENT_RECURSIVE: i32 = 1;
        Self::new(opcode::ADD_WATCH, |body| {
            body.text(path).int(PERSISTENT_RECURSIVE);
        })
    }

    pub(crate) fn remove_watches(path: &str) -> Self {
        const ANY: i32 = 3;
        Self::new(opcode::REMOVE_WATCHES, |body| {
            body.text(path).int(ANY);
        })
    }

    /// The watches of a connection before, which knew of all transactions up to `zxid`.
    pub(crate) fn set_watches(zxid: i64, paths: &[&str]) -> Self {
        Self::new(opcode::SET_WATCHES2, |body| {
            // Of data, existence and children, and those that are not recursive.
            body.long(zxid).texts(&[]).texts(&[]).texts(&[]).texts(&[]).texts(paths);
        })
    }

    pub(crate) fn empty(opcode: i32) -> Self {
        Self::new(opcode, |_| {})
    }
}

const ANY_VERSION: i32 = -1;

pub(crate) fn create(body: &mut Encoder, path: &str, data: &[u8], mode: CreateMode, acl: &[Acl]) {
    Acl::encode_all(acl, body.text(path).bytes(data));
    body.int(mode.flags());
}

pub(crate) fn set_data(body: &mut Encoder, path: &str, data: &[u8], version: Option<i32>) {
    body.text(path).bytes(data).int(version.unwrap_or(ANY_VERSION));
}

/// A path with the version that must be found there.
pub(crate) fn named(body: &mut Encoder, path: &str, version: Option<i32>) {
    body.text(path).int(version.unwrap_or(ANY_VERSION));
}

/// A path that is read without a watch.
pub(crate) fn read(body: &mut Encoder, path: &str) {
    body.text(path).bool(false);
}

/// The answer to a creation.
pub(crate) fn created(answer: &mut Decoder<'_>) -> Result<Stat, Error> {
    answer.text()?;
    Stat::decode(answer)
}

/// The answer to a reading of data.
pub(crate) fn data(answer: &mut Decoder<'_>) -> Result<(Vec<u8>, Stat), Error> {
    Ok((answer.bytes()?.to_vec(), Stat::decode(answer)?))
}
