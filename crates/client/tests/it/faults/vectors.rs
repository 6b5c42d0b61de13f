//! What every client must agree on, whatever its language.

use frazil_client::{Layout, Parts};
use serde_json::Value;

use super::*;

fn entries(text: &str) -> Vec<Value> {
    serde_json::from_str(text).unwrap()
}

#[tokio::test]
async fn ids_are_taken_apart_as_the_vectors_say() {
    let layouts = entries(include_str!("../../../../wire/vectors/layouts.json"));
    let ids = entries(include_str!("../../../../wire/vectors/ids.json"));
    let mut compared = 0;
    for entry in &layouts {
        let layout: Layout = entry["layout"]["text"].as_str().unwrap().parse().unwrap();
        let client = Client::builder().endpoint("http://nobody").layout(layout).build().unwrap();
        for vector in ids.iter().filter(|id| id["preset"] == entry["name"]) {
            let expected = &vector["decoded"];
            let number = |name: &str| expected[name].as_u64().unwrap();
            let id: Id = expected["id"].as_str().unwrap().parse().unwrap();
            let Parts { tick, worker, sequence, .. } = client.decode(id).unwrap();
            assert_eq!(
                (tick, worker, sequence),
                (number("tick"), number("worker"), number("sequence"))
            );
            assert_eq!(client.unix_ms(id).unwrap(), number("unix_ms"));
            compared += 1;
        }
    }
    assert_eq!(compared, ids.len());
}

#[tokio::test]
async fn what_the_vectors_call_retryable_is_retried_and_nothing_else() {
    for vector in entries(include_str!("../../../../wire/vectors/errors.json")) {
        let status = u16::try_from(vector["http_status"].as_u64().unwrap()).unwrap();
        let reason = vector["reason"].as_str().unwrap().to_owned();
        let is_retryable = vector["retryable"].as_bool().unwrap();
        let name = reason.clone();
        let server = Impostor::start(move |a| problem(a, status, &name, None)).await;
        let client = direct([server.url()]).build().unwrap();
        let error = client.batch(1).await.unwrap_err();
        assert_eq!(error.reason().map(Reason::name), Some(reason.as_str()));
        assert_eq!(error.is_retryable(), is_retryable, "{reason}");
        assert_eq!(server.asked() > 1, is_retryable, "{reason}");
    }
}
