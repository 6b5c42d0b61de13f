//! Other namespaces under the same root, found without reading what is in them.

use frazil_etcd::{KeyValue, OperationResponse, RangeRequest, TxnRequest};

use super::keys::Keys;
use super::remote::{Remote, RequestEffect};
use crate::error::Error;
use crate::namespace::Namespace;
use crate::record::Meta;

/// Goes from the first key of one namespace to the first key after it: two keys are read for each,
/// however many it has.
pub(super) async fn find(
    remote: &Remote,
    keys: &Keys,
    own: &Namespace,
    most: usize,
) -> Result<Vec<(Namespace, Meta)>, Error> {
    let (root, mut found) = (keys.root(), Vec::new());
    let end = after(root);
    let mut from = root.to_owned();
    for _ in 0..most {
        let range_end = end.clone().into();
        let one = RangeRequest { key: from.into(), range_end, limit: 1, keys_only: true };
        let Some(first) = get(remote, one).await? else { break };
        let Some(name) = name_of(root, &first.key) else { break };
        if name != own.as_str()
            && let Ok(namespace) = name.parse()
            && let Some(kv) = get(remote, RangeRequest::key(format!("{root}{name}/meta"))).await?
            && let Ok(meta) = serde_json::from_slice(&kv.value)
        {
            found.push((namespace, meta));
        }
        from = after(&format!("{root}{name}/"));
    }
    Ok(found)
}

async fn get(remote: &Remote, range: RangeRequest) -> Result<Option<KeyValue>, Error> {
    let call = remote.call("list the namespaces");
    let txn = TxnRequest { success: vec![range.into()], ..TxnRequest::default() };
    let answer = call.end(call.transact(RequestEffect::Reads, &txn).await)?;
    Ok(answer.responses.into_iter().find_map(|response| match response.response {
        Some(OperationResponse::ResponseRange(got)) => got.kvs.into_iter().next(),
        _ => None,
    }))
}

/// The part of a key between the root and the next slash.
fn name_of<'a>(root: &str, key: &'a [u8]) -> Option<&'a str> {
    let rest = std::str::from_utf8(key).ok()?.strip_prefix(root)?;
    Some(rest.split_once('/').map_or(rest, |(name, _)| name))
}

/// The first key after all that begin with a text that ends with a slash.
fn after(prefix: &str) -> String {
    let mut text = prefix.trim_end_matches('/').to_owned();
    text.push(char::from(b'/' + 1));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_ends_where_the_next_one_can_begin() {
        assert_eq!(after("/frazil/orders/"), "/frazil/orders0");
        assert!(after("/frazil/a/").as_str() <= "/frazil/aa/meta");
        assert!(after("/frazil/a/").as_str() > "/frazil/a/w/7");
        assert_eq!(name_of("/frazil/", b"/frazil/a/w/7"), Some("a"));
        assert_eq!(name_of("/frazil/", b"/frazil/bare"), Some("bare"));
        assert_eq!(name_of("/frazil/", b"/other/a/meta"), None);
        let keys = |root| Keys::new(root, &Namespace::default()).root().to_owned();
        assert_eq!((keys("").as_str(), keys("deep/root").as_str()), ("/frazil/", "/deep/root/"));
    }
}
