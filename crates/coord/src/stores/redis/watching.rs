//! Announcements: a connection of its own that subscribes, and a task that looks after it.

use std::sync::Arc;

use redis::{PushInfo, PushKind, Value};
use tokio::sync::{Notify, watch};
use tokio::time::{interval, timeout};

use super::link::{dial, shown};
use super::session::Session;
use super::settings::Login;
use crate::error::Error;
use crate::store::{Announcer, Changes, Watched};

/// Subscribes; announcements come from when this returns. The task behind it ends when nobody
/// listens, when the connection is lost, and when the store is gone.
pub(super) async fn watch(
    session: &Arc<Session>,
    watched: &Watched,
    mut store: watch::Receiver<()>,
) -> Result<Changes, Error> {
    let settings = &session.settings;
    let (announcer, changes) = Changes::channel();
    let ended = Arc::new(Notify::new());
    let push = forward(announcer.clone(), watched, ended.clone());
    let subscribing = async {
        let address = session.link().await?.address;
        let mut connection = dial(settings, &address, Login::Own, push).await?;
        let subscribed = connection.subscribe(session.keys.channel()).await;
        subscribed.map_err(|error| settings.shut_out(&shown(&address), &error))?;
        Ok(connection)
    };
    let limit = settings.timeout;
    let mut connection = match timeout(limit, subscribing).await {
        Ok(connection) => connection?,
        Err(_) => return Err(settings.silent("the server")),
    };
    tokio::spawn(async move {
        let mut looks = interval(limit);
        loop {
            tokio::select! {
                () = announcer.closed() => break,
                () = ended.notified() => break,
                _ = store.changed() => break,
                _ = looks.tick() => {
                    // Only an answer tells a quiet server from one that is out of reach.
                    let ping = redis::cmd("PING");
                    let answer = ping.query_async::<Value>(&mut connection);
                    if !matches!(timeout(limit, answer).await, Ok(Ok(_))) {
                        break;
                    }
                }
            }
        }
    });
    Ok(changes)
}

/// Announces what the server pushes about what is watched.
fn forward(
    announcer: Announcer,
    watched: &Watched,
    ended: Arc<Notify>,
) -> impl Fn(PushInfo) -> Result<(), redis::RedisError> + Send + Sync + 'static {
    let (is_group, text) = match watched {
        Watched::Group(group) => (true, group.letter().to_owned()),
        Watched::Slot(slot) => (false, slot.to_string()),
    };
    move |info| {
        let is_ours = match info.data.as_slice() {
            [.., Value::BulkString(slot)] if is_group => slot.starts_with(text.as_bytes()),
            [.., Value::BulkString(slot)] => slot == text.as_bytes(),
            _ => true,
        };
        match info.kind {
            PushKind::Message if is_ours => {
                let _ = announcer.announce();
            }
            PushKind::Disconnection => ended.notify_one(),
            _ => {}
        }
        Ok(())
    }
}
