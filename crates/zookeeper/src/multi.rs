//! Several operations at one moment: writes of which all are carried out or none, and reads.

use std::error;
use std::fmt;

use crate::error::Error;
use crate::jute::{Decoder, Encoder};
use crate::node::{Acl, CreateMode, Stat};
use crate::request::{self, Request, opcode};

/// One operation of a [`multi`](crate::Client::multi). Without a version, any is right.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// The node has this version.
    Check {
        /// Its path.
        path: String,
        /// Its version.
        version: i32,
    },
    /// Creates a node.
    Create {
        /// Its path.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// How long it exists.
        mode: CreateMode,
        /// Who may do what with it.
        acl: Vec<Acl>,
    },
    /// Writes a node.
    SetData {
        /// Its path.
        path: String,
        /// Its data.
        data: Vec<u8>,
        /// The version that it must have.
        version: Option<i32>,
    },
    /// Deletes a node.
    Delete {
        /// Its path.
        path: String,
        /// The version that it must have.
        version: Option<i32>,
    },
}

/// What an operation of a multi has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OpResult {
    /// The node has the version.
    Checked,
    /// The node is created. Servers do not tell its state here.
    Created,
    /// The node is written, and has this state.
    Set(Stat),
    /// The node is deleted.
    Deleted,
}

/// Why a multi has done nothing, or may have.
#[derive(Clone, Debug)]
pub struct MultiError {
    /// Which operation failed, from 0; `None`: the request as a whole.
    pub index: Option<usize>,
    /// Why.
    pub error: Error,
}

/// Something to read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Get {
    /// The data of the node at a path.
    Data(String),
    /// The names of the children of the node at a path.
    Children(String),
}

/// Something that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GetResult {
    /// The data of a node, and its state.
    Data(Vec<u8>, Stat),
    /// The names of the children of a node, in no order.
    Children(Vec<String>),
}

impl Op {
    /// Fails unless the node has this version.
    pub fn check(path: impl Into<String>, version: i32) -> Self {
        Self::Check { path: path.into(), version }
    }

    /// Creates a node.
    pub fn create(
        path: impl Into<String>,
        data: impl Into<Vec<u8>>,
        mode: CreateMode,
        acl: impl Into<Vec<Acl>>,
    ) -> Self {
        Self::Create { path: path.into(), data: data.into(), mode, acl: acl.into() }
    }

    /// Writes a node that has this version.
    pub fn set_data(
        path: impl Into<String>,
        data: impl Into<Vec<u8>>,
        version: Option<i32>,
    ) -> Self {
        Self::SetData { path: path.into(), data: data.into(), version }
    }

    /// Deletes a node that has this version.
    pub fn delete(path: impl Into<String>, version: Option<i32>) -> Self {
        Self::Delete { path: path.into(), version }
    }

    fn encode(&self, body: &mut Encoder) {
        match self {
            Self::Check { path, version } => {
                header(body, opcode::CHECK);
                request::named(body, path, Some(*version));
            }
            Self::Create { path, data, mode, acl } => {
                header(body, opcode::CREATE2);
                request::create(body, path, data, *mode, acl);
            }
            Self::SetData { path, data, version } => {
                header(body, opcode::SET_DATA);
                request::set_data(body, path, data, *version);
            }
            Self::Delete { path, version } => {
                header(body, opcode::DELETE);
                request::named(body, path, *version);
            }
        }
    }
}

impl Get {
    fn encode(&self, body: &mut Encoder) {
        let (opcode, path) = match self {
            Self::Data(path) => (opcode::GET_DATA, path),
            Self::Children(path) => (opcode::GET_CHILDREN, path),
        };
        header(body, opcode);
        request::read(body, path);
    }
}

pub(crate) fn write_request(ops: &[Op]) -> Request {
    Request::new(opcode::MULTI, |body| {
        ops.iter().for_each(|op| op.encode(body));
        end(body);
    })
}

pub(crate) fn read_request(gets: &[Get]) -> Request {
    Request::new(opcode::MULTI_READ, |body| {
        gets.iter().for_each(|get| get.encode(body));
        end(body);
    })
}

fn header(body: &mut Encoder, opcode: i32) {
    body.int(opcode).bool(false).int(-1);
}

fn end(body: &mut Encoder) {
    body.int(-1).bool(true).int(-1);
}

/// The answer to a multi of so many writes.
pub(crate) fn written(answer: &mut Decoder<'_>, count: usize) -> Result<Vec<OpResult>, MultiError> {
    let (mut results, mut index) = (Vec::new(), 0);
    while let Some(opcode) = next(answer)? {
        match opcode {
            opcode::CHECK => results.push(OpResult::Checked),
            opcode::DELETE => results.push(OpResult::Deleted),
            opcode::SET_DATA => results.push(OpResult::Set(Stat::decode(answer)?)),
            opcode::CREATE => {
                answer.text()?;
                results.push(OpResult::Created);
            }
            opcode::CREATE2 => {
                request::created(answer)?;
                results.push(OpResult::Created);
            }
            opcode::ERROR => match answer.int()? {
                // Those before the one that failed.
                0 => {}
                code => {
                    return Err(MultiError { index: Some(index), error: Error::from_code(code) });
                }
            },
            _ => return Err(UNKNOWN.into()),
        }
        index += 1;
    }
    if results.len() == count { Ok(results) } else { Err(MISCOUNTED.into()) }
}

/// The answer to so many reads.
pub(crate) fn read(
    answer: &mut Decoder<'_>,
    count: usize,
) -> Result<Vec<Result<GetResult, Error>>, Error> {
    let mut results = Vec::new();
    while let Some(opcode) = next(answer)? {
        results.push(match opcode {
            opcode::GET_DATA => {
                let (data, stat) = request::data(answer)?;
                Ok(GetResult::Data(data, stat))
            }
            opcode::GET_CHILDREN => Ok(GetResult::Children(answer.texts()?)),
            opcode::ERROR => Err(Error::from_code(answer.int()?)),
            _ => return Err(UNKNOWN),
        });
    }
    if results.len() == count { Ok(results) } else { Err(MISCOUNTED) }
}

const UNKNOWN: Error = Error::Malformed("an operation in it is not known");
const MISCOUNTED: Error = Error::Malformed("it has another number of results than was asked for");

/// The kind of the next result; `None` after the last.
fn next(answer: &mut Decoder<'_>) -> Result<Option<i32>, Error> {
    let (opcode, is_last, _) = (answer.int()?, answer.bool()?, answer.int()?);
    Ok((!is_last).then_some(opcode))
}

impl From<Error> for MultiError {
    fn from(error: Error) -> Self {
        Self { index: None, error }
    }
}

impl fmt::Display for MultiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            Some(index) => write!(f, "operation {index} of a multi failed"),
            None => f.write_str("a multi failed"),
        }
    }
}

impl error::Error for MultiError {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&self.error)
    }
}
