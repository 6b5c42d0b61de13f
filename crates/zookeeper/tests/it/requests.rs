//! Requests and multis.

use frazil_zookeeper::{CreateMode, Error, Get, GetResult, Op, OpResult};

use crate::place::{ANYONE, client_and_node, connect, new_path, server};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_is_created_written_read_and_deleted() {
    let (client, path) = client_and_node().await;
    let (data, stat) = client.get_data(&path).await.unwrap();
    assert_eq!((&data[..], stat.version, stat.ephemeral_owner), (&b"first"[..], 0, 0));
    let again = client.create(&path, b"", CreateMode::Persistent, &ANYONE).await;
    assert!(matches!(again, Err(Error::NodeExists)), "{again:?}");

    let written = client.set_data(&path, b"second", Some(0)).await.unwrap();
    assert_eq!((written.version, written.data_length), (1, 6));
    assert!(written.mzxid > stat.mzxid && written.mtime >= stat.mtime);
    let outdated = client.set_data(&path, b"third", Some(0)).await;
    assert!(matches!(outdated, Err(Error::BadVersion)), "{outdated:?}");
    assert_eq!(client.exists(&path).await.unwrap(), Some(written));

    let child = format!("{path}/child");
    client.create(&child, b"", CreateMode::Ephemeral, &ANYONE).await.unwrap();
    assert_eq!(client.get_children(&path).await.unwrap(), ["child"]);
    let owner = client.exists(&child).await.unwrap().unwrap().ephemeral_owner;
    assert_eq!(owner, client.session_id().0);
    let below = client.create(&format!("{child}/x"), b"", CreateMode::Persistent, &ANYONE).await;
    assert!(matches!(below, Err(Error::NoChildrenForEphemerals)), "{below:?}");
    let full = client.delete(&path, None).await;
    assert!(matches!(full, Err(Error::NotEmpty)), "{full:?}");
    client.delete(&child, Some(0)).await.unwrap();
    client.delete(&path, None).await.unwrap();
    assert_eq!(client.exists(&path).await.unwrap(), None);
    assert!(matches!(client.get_data(&path).await, Err(Error::NoNode)));
    client.sync("/").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_make_no_sense_are_refused_and_the_client_goes_on() {
    let (client, path) = client_and_node().await;
    let refused = client.create("no slash", b"", CreateMode::Persistent, &ANYONE).await;
    assert!(matches!(refused, Err(Error::BadArguments)), "{refused:?}");
    let refused = client.create(&new_path(), b"", CreateMode::Persistent, &[]).await;
    assert!(matches!(refused, Err(Error::InvalidAcl)), "{refused:?}");
    let huge = client.set_data(&path, &vec![0; 5 << 20], None).await;
    assert!(matches!(huge, Err(Error::TooLarge(_))), "{huge:?}");
    assert_eq!(client.get_data(&path).await.unwrap().0, b"first");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_multi_does_all_or_nothing_and_says_what_failed() {
    let (client, path) = client_and_node().await;
    let (child, other) = (format!("{path}/child"), format!("{path}/other"));
    let ops = [
        Op::check(&*path, 0),
        Op::create(&*child, "", CreateMode::Persistent, ANYONE),
        Op::set_data(&*child, "text", None),
        Op::create(&*other, "", CreateMode::Ephemeral, ANYONE),
        Op::delete(&*other, None),
    ];
    let results = client.multi(&ops).await.unwrap();
    let [
        OpResult::Checked,
        OpResult::Created,
        OpResult::Set(stat),
        OpResult::Created,
        OpResult::Deleted,
    ] = results[..]
    else {
        panic!("{results:?}")
    };
    assert_eq!(client.exists(&child).await.unwrap(), Some(stat));

    let failed = client
        .multi(&[
            Op::set_data(&*child, "lost", None),
            Op::check(&*path, 7),
            Op::delete(&*child, None),
        ])
        .await
        .unwrap_err();
    assert_eq!(failed.index, Some(1), "{failed:?}");
    assert!(matches!(failed.error, Error::BadVersion), "{failed:?}");
    assert_eq!(client.get_data(&child).await.unwrap().0, b"text");
    assert!(client.multi(&[]).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn several_reads_have_a_result_each() {
    let (client, path) = client_and_node().await;
    let child = format!("{path}/child");
    client.create(&child, b"text", CreateMode::Persistent, &ANYONE).await.unwrap();
    let gets = [
        Get::Data(child.clone()),
        Get::Data(format!("{path}/none")),
        Get::Children(path.clone()),
        Get::Children(child.clone()),
        Get::Children(format!("{path}/none")),
    ];
    let read = client.read(&gets).await.unwrap();
    let stat = client.exists(&child).await.unwrap().unwrap();
    assert_eq!(*read[0].as_ref().unwrap(), GetResult::Data(b"text".to_vec(), stat));
    assert!(matches!(read[1], Err(Error::NoNode)));
    assert_eq!(*read[2].as_ref().unwrap(), GetResult::Children(vec!["child".into()]));
    assert_eq!(*read[3].as_ref().unwrap(), GetResult::Children(Vec::new()));
    assert!(matches!(read[4], Err(Error::NoNode)));
    assert!(client.read(&[]).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn many_requests_at_once_are_answered_in_their_order() {
    let (client, path) = client_and_node().await;
    let asked: Vec<_> =
        (0..3000).map(|n| client.set_data(&path, n.to_string().as_bytes(), None)).collect();
    for (version, written) in (1..).zip(asked) {
        assert_eq!(written.await.unwrap().version, version);
    }
    // Those that nothing is done about fail.
    let asked: Vec<_> = (0..20_000).map(|_| client.exists(&path)).collect();
    let (mut answered, mut refused) = (0, 0);
    for asked in asked {
        match asked.await {
            Ok(Some(_)) => answered += 1,
            Err(Error::Busy) => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert!(answered >= 4096, "{answered} answered, {refused} refused");
    assert!(client.exists(&path).await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_see_what_others_wrote_after_a_sync() {
    let (one, path) = client_and_node().await;
    let other = connect(server().port()).await;
    one.set_data(&path, b"new", None).await.unwrap();
    let (synced, read) = (other.sync("/"), other.get_data(&path));
    assert_eq!(read.await.unwrap().0, b"new");
    synced.await.unwrap();
}
