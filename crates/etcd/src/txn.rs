//! Short forms of what transactions are made of.

use crate::proto::etcdserverpb::compare::{CompareResult, CompareTarget, TargetUnion};
use crate::proto::etcdserverpb::request_op::Request;
use crate::proto::etcdserverpb::{
    Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, TxnRequest,
};

impl Compare {
    /// The revision in which a key was created; 0 if there is none.
    pub fn create_revision(key: impl Into<Vec<u8>>, result: CompareResult, revision: i64) -> Self {
        Self::new(key, result, CompareTarget::Create, TargetUnion::CreateRevision(revision))
    }

    /// The revision in which a key was last changed; 0 if there is none.
    pub fn mod_revision(key: impl Into<Vec<u8>>, result: CompareResult, revision: i64) -> Self {
        Self::new(key, result, CompareTarget::Mod, TargetUnion::ModRevision(revision))
    }

    /// The value of a key. That of a key that is not there compares with nothing.
    pub fn value(
        key: impl Into<Vec<u8>>,
        result: CompareResult,
        value: impl Into<Vec<u8>>,
    ) -> Self {
        Self::new(key, result, CompareTarget::Value, TargetUnion::Value(value.into()))
    }

    fn new(
        key: impl Into<Vec<u8>>,
        result: CompareResult,
        target: CompareTarget,
        value: TargetUnion,
    ) -> Self {
        let (result, target) = (result.into(), target.into());
        Self { result, target, key: key.into(), target_union: Some(value) }
    }
}

impl RequestOp {
    /// Reads a key.
    pub fn get(key: impl Into<Vec<u8>>) -> Self {
        RangeRequest::key(key).into()
    }

    /// Writes a key that ends with no lease.
    pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Self {
        PutRequest { key: key.into(), value: value.into(), lease: 0 }.into()
    }

    /// Deletes a key.
    pub fn delete(key: impl Into<Vec<u8>>) -> Self {
        Self { request: Some(Request::RequestDeleteRange(DeleteRangeRequest { key: key.into() })) }
    }
}

impl RangeRequest {
    /// Reads one key.
    pub fn key(key: impl Into<Vec<u8>>) -> Self {
        Self { key: key.into(), ..Self::default() }
    }

    /// Reads all keys that begin so.
    pub fn prefix(prefix: impl Into<Vec<u8>>) -> Self {
        let key = prefix.into();
        let range_end = prefix_end(&key);
        // etcd takes no empty key here: the first that there can be.
        let key = if key.is_empty() { vec![0] } else { key };
        Self { range_end, key, ..Self::default() }
    }
}

impl From<RangeRequest> for RequestOp {
    fn from(range: RangeRequest) -> Self {
        Self { request: Some(Request::RequestRange(range)) }
    }
}

impl From<PutRequest> for RequestOp {
    fn from(put: PutRequest) -> Self {
        Self { request: Some(Request::RequestPut(put)) }
    }
}

impl From<TxnRequest> for RequestOp {
    fn from(txn: TxnRequest) -> Self {
        Self { request: Some(Request::RequestTxn(txn)) }
    }
}

/// The first key after all that begin with a prefix, as the end of a range.
pub(crate) fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    // What etcd takes for the end of all keys.
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_after_all_that_begin_with_its_prefix() {
        for (prefix, end) in [
            (&b"/a/"[..], &b"/a0"[..]),
            (b"a", b"b"),
            (b"a\xff", b"b"),
            (b"a\xff\xff", b"b"),
            (b"\xff", b"\0"),
            (b"", b"\0"),
        ] {
            assert_eq!(prefix_end(prefix), end, "{prefix:?}");
        }
    }
}
