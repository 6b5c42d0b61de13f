//! Servers that do not keep to the protocol: nothing they send makes the client panic, wait for ever
//! or take an answer for that of another request.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use frazil_zookeeper::{Client, Error, State};

use crate::place::{config, wait_for, within};

fn frame(body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len()).unwrap();
    [&length.to_be_bytes(), body].concat()
}

fn reply(xid: i32, code: i32, body: &[u8]) -> Vec<u8> {
    frame(&[&xid.to_be_bytes()[..], &1_i64.to_be_bytes(), &code.to_be_bytes(), body].concat())
}

/// Grants a session of 2 s.
fn grant() -> Vec<u8> {
    let head = [&0_i32.to_be_bytes()[..], &2000_i32.to_be_bytes(), &7_i64.to_be_bytes()].concat();
    frame(&[&head[..], &16_i32.to_be_bytes(), &[0; 16], &[0]].concat())
}

/// The answer to the ping that ends connecting.
fn ping() -> Vec<u8> {
    reply(-2, 0, &[])
}

/// A server that answers to the nth message of every connection with the nth part, and then closes.
fn server(parts: Vec<Vec<u8>>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let parts = parts.clone();
            thread::spawn(move || answer(stream, &parts));
        }
    });
    port
}

fn answer(mut stream: TcpStream, parts: &[Vec<u8>]) {
    for part in parts {
        let mut length = [0; 4];
        if stream.read_exact(&mut length).is_err() {
            return;
        }
        let mut message = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        if stream.read_exact(&mut message).and_then(|()| stream.write_all(part)).is_err() {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_not_granted_properly_is_none() {
    let truncated = grant()[4..20].to_vec();
    let event = reply(-1, 0, &[0, 0]);
    for (parts, what) in [
        (vec![Vec::new()], "nothing"),
        (vec![frame(&[])], "an empty frame"),
        (vec![frame(&truncated)], "half a grant"),
        (vec![i32::MAX.to_be_bytes().to_vec()], "a huge frame"),
        (vec![(-5_i32).to_be_bytes().to_vec()], "a negative frame"),
        (vec![b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()], "another protocol"),
        (vec![grant(), frame(&[1, 2, 3])], "half a head"),
        (vec![grant(), reply(5, 0, &[])], "an answer that nobody waits for"),
        (vec![grant(), event], "half an event"),
    ] {
        let mut config = config(server(parts));
        config.session_timeout = Duration::from_secs(2);
        let refused = within(Client::connect(&config)).await;
        assert!(matches!(refused, Err(Error::Unreachable(_))), "{what}: {refused:?}");
    }
    let mut none = grant();
    none[12..20].fill(0);
    let expired = Client::connect(&config(server(vec![none]))).await;
    assert!(matches!(expired, Err(Error::SessionExpired)), "{expired:?}");
    let denied = Client::connect(&config(server(vec![grant(), reply(-4, -115, &[])]))).await;
    assert!(matches!(denied, Err(Error::AuthFailed)), "{denied:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_answer_ends_the_connection_and_the_request() {
    for (part, what) in [
        (reply(99, 0, &[]), "99"),
        (reply(0, 0, &[]), "request 0"),
        (reply(-4, 0, &[]), "request -4"),
        (frame(&[0; 7]), "too early"),
        (reply(-1, 0, &[0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 1, 0]), "too early"),
        (i32::MIN.to_be_bytes().to_vec(), "a frame of"),
        ((100_i32 << 20).to_be_bytes().to_vec(), "a frame of"),
    ] {
        let client = Client::connect(&config(server(vec![grant(), ping(), part]))).await.unwrap();
        let lost = within(client.exists("/")).await;
        let Err(Error::ConnectionLoss(cause)) = &lost else { panic!("{what}: {lost:?}") };
        assert!(cause.to_string().contains(what), "{what}: {cause}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_cannot_be_read_fails_its_request_alone() {
    let lies = [&0_i32.to_be_bytes()[..], &i32::MAX.to_be_bytes()].concat();
    let endless = [0, 0, 0, 14, 0, 0, 0, 0, 0].repeat(1000);
    for body in [Vec::new(), vec![0; 67], vec![0xff; 200], lies, endless] {
        let parts = vec![grant(), ping(), reply(1, 0, &body), reply(2, -101, &[])];
        let client = Client::connect(&config(server(parts))).await.unwrap();
        let read = within(client.multi(&[frazil_zookeeper::Op::check("/", 0)])).await;
        let error = read.unwrap_err().error;
        assert!(matches!(error, Error::Malformed(_)), "{body:?}: {error:?}");
        assert_eq!(within(client.exists("/")).await.unwrap(), None, "the next is answered");
    }
    let parts = vec![grant(), ping(), reply(1, 0, &i32::MAX.to_be_bytes())];
    let client = Client::connect(&config(server(parts))).await.unwrap();
    let listed = within(client.get_children("/")).await;
    assert!(matches!(listed, Err(Error::Malformed(_))), "{listed:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_said_to_be_over_is() {
    for (code, state) in [(-112, State::Expired), (-115, State::AuthFailed)] {
        let parts = vec![grant(), ping(), reply(1, code, &[])];
        let client = Client::connect(&config(server(parts))).await.unwrap();
        within(client.exists("/")).await.unwrap_err();
        wait_for(&client, state).await;
        within(client.exists("/")).await.unwrap_err();
    }
}
