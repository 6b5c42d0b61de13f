//! Logins: made when they are wanted, and again when they are not known any more.

use frazil_etcd::{Client, Code, Config, Login, RequestOp, Status, WatchCreateRequest};
use frazil_rig::Etcd;

use crate::requests::{all, connect};

const PASSWORD: &str = "open-sesame";

fn log_in(etcd: &Etcd, password: &str) -> Client {
    let login = Login { user: "root".into(), password: password.into() };
    let mut config = Config::default();
    config.login = Some(login);
    Client::new(&etcd.address(), &config).unwrap()
}

async fn get(client: &Client) -> Result<(), Status> {
    client.txn(&all([RequestOp::get("key")])).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_right_password_opens() {
    let etcd = Etcd::builder().with_auth("root", PASSWORD).start().unwrap();
    get(&log_in(&etcd, PASSWORD)).await.unwrap();
    let wrong = get(&log_in(&etcd, "wrong-sesame")).await.unwrap_err();
    assert_eq!(wrong.code(), Code::InvalidArgument, "{wrong}");
    assert!(!format!("{wrong} {wrong:?}").contains("sesame"), "{wrong:?}");
    let nobody = get(&connect(&etcd)).await.unwrap_err();
    assert!(nobody.message().contains("user name is empty"), "{nobody}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_not_known_any_more_is_renewed() {
    let etcd = Etcd::builder().with_auth("root", PASSWORD).start().unwrap();
    let (client, watcher) = (log_in(&etcd, PASSWORD), log_in(&etcd, PASSWORD));
    get(&client).await.unwrap();
    get(&watcher).await.unwrap();
    // This makes etcd forget all tokens.
    for verb in ["disable", "enable"] {
        etcd.etcdctl(&["auth", verb]).unwrap();
    }
    let (one, other) = tokio::join!(get(&client), get(&client));
    one.and(other).unwrap();
    watcher.watch(&[WatchCreateRequest::key("key")]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_nobody_asks_for_is_noticed_and_used_once_it_is_wanted() {
    let etcd = Etcd::start().unwrap();
    let client = log_in(&etcd, PASSWORD);
    assert!(!client.is_login_ignored().await, "nothing was asked yet");
    get(&client).await.unwrap();
    assert!(client.is_login_ignored().await);
    for arguments in [
        &["role", "add", "root"][..],
        &["user", "add", &format!("root:{PASSWORD}")],
        &["user", "grant-role", "root", "root"],
        &["auth", "enable"],
    ] {
        etcd.etcdctl(arguments).unwrap();
    }
    get(&client).await.unwrap();
    assert!(!client.is_login_ignored().await);
}
