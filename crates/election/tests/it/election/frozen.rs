//! A leader's process that is stopped, and wakes up after its successor was elected. And leaders
//! and registers that are broken, for which the same test must not pass.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use frazil_coord::Copied;
use frazil_coord::{StoreUrl, Token, open};

use crate::stage::{Kind, PATIENCE, Stage, settings, soon};

const URL: &str = "FRAZIL_TEST_LEADER_URL";
const NAMESPACE: &str = "FRAZIL_TEST_LEADER_NAMESPACE";
const BROKEN: &str = "FRAZIL_TEST_LEADER_BROKEN";

#[tokio::test(flavor = "multi_thread")]
async fn on_redis_it_knows_at_its_first_look_and_its_writes_are_refused() {
    assert_eq!(wake_up(Kind::Redis, Leader::Sound, Register::fenced()).await, Found::Harmless);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_etcd_it_knows_at_its_first_look_and_its_writes_are_refused() {
    assert_eq!(wake_up(Kind::Etcd, Leader::Sound, Register::fenced()).await, Found::Harmless);
}

#[tokio::test(flavor = "multi_thread")]
async fn on_zookeeper_it_knows_at_its_first_look_and_its_writes_are_refused() {
    assert_eq!(wake_up(Kind::ZooKeeper, Leader::Sound, Register::fenced()).await, Found::Harmless);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_remembers_instead_of_looking_is_caught() {
    let found = wake_up(Kind::Redis, Leader::Remembering, Register::fenced()).await;
    assert_eq!(found, Found::TwoLeaders);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_register_without_a_fence_is_caught() {
    let found = wake_up(Kind::Redis, Leader::Sound, Register::default()).await;
    assert_eq!(found, Found::Overwritten);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Leader {
    Sound,
    /// Believes what it was told when it was elected.
    Remembering,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Harmless,
    TwoLeaders,
    Overwritten,
}

/// What leaders write to.
#[derive(Default)]
struct Register {
    is_fenced: bool,
    highest: Token,
    writer: String,
}

impl Register {
    fn fenced() -> Self {
        Self { is_fenced: true, ..Self::default() }
    }

    fn write(&mut self, token: Token, writer: &str) -> bool {
        let is_stale = self.is_fenced && token < self.highest;
        if !is_stale {
            (self.highest, self.writer) = (token, writer.to_owned());
        }
        !is_stale
    }
}

async fn wake_up(kind: Kind, leader: Leader, mut register: Register) -> Found {
    let stage = Stage::new(kind);
    let mut child = Process::start(&stage, leader);
    let token = child.ask("token").parse().map(Token).unwrap();
    assert_eq!(child.ask("leads"), "true");
    assert!(register.write(token, "the first"));

    child.freeze();
    // What it is asked while it sleeps, it answers as the first thing after waking.
    child.send("leads");
    let successor = soon(stage.candidate("b").await.campaign()).await.unwrap();
    assert!(successor.token() > token);
    assert!(register.write(successor.token(), "the second"));
    child.signal("-CONT");
    let leads = child.receive();
    assert!(successor.is_leader());
    let written = register.write(token, "the first");
    match (leads.as_str(), written) {
        ("true", _) => Found::TwoLeaders,
        ("false", true) => Found::Overwritten,
        ("false", false) => {
            assert_eq!(register.writer, "the second");
            Found::Harmless
        }
        (other, _) => panic!("it answers {other:?}"),
    }
}

/// A process that ends with the test, frozen or not.
struct Process {
    child: Child,
    lines: Receiver<String>,
}

impl Process {
    fn start(stage: &Stage, leader: Leader) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "election::frozen::leader_process", "--ignored", "--nocapture"]);
        command.env(URL, stage.url().unwrap()).env(NAMESPACE, stage.namespace());
        if leader == Leader::Remembering {
            command.env(BROKEN, "1");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // The test harness of the process says things too.
            let ours = output.lines().map_while(Result::ok);
            ours.filter_map(|line| Some(line.split_once("leader: ")?.1.to_owned()))
                .try_for_each(|line| send.send(line))
        });
        Self { child, lines }
    }

    fn signal(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
    }

    /// Stops it, and waits until every thread has: what is sent to it from then on is read after it
    /// woke up.
    fn freeze(&self) {
        self.signal("-STOP");
        let is_stopped = |task: std::path::PathBuf| {
            let stat = std::fs::read_to_string(task.join("stat")).unwrap_or_default();
            // Behind the name in brackets.
            stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('T'))
        };
        frazil_rig::wait_until("the leader to stop", PATIENCE, || {
            let tasks = std::fs::read_dir(format!("/proc/{}/task", self.child.id())).unwrap();
            tasks.flatten().all(|task| is_stopped(task.path()))
        })
        .unwrap();
    }

    fn send(&mut self, question: &str) {
        let pipe = self.child.stdin.as_mut().unwrap();
        writeln!(pipe, "{question}").and_then(|()| pipe.flush()).unwrap();
    }

    fn receive(&self) -> String {
        self.lines.recv_timeout(PATIENCE).expect("it answers in time")
    }

    fn ask(&mut self, question: &str) -> String {
        self.send(question);
        self.receive()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The leader, in a process of its own.
#[test]
#[ignore = "started by the tests above"]
fn leader_process() {
    let url: StoreUrl = std::env::var(URL).expect("started by a test").parse().unwrap();
    let namespace = std::env::var(NAMESPACE).unwrap().parse().unwrap();
    let is_broken = std::env::var(BROKEN).is_ok();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let settings = settings("a");
    let leadership = runtime.block_on(async {
        let url = frazil_election::store_url(&url, settings.ttl);
        let store = open(&url, &namespace, Copied::Refuse).await.unwrap();
        let elections = frazil_election::Elections::new(store);
        elections.candidate("job", settings).unwrap().campaign().await.unwrap()
    });
    for question in std::io::stdin().lines().map_while(Result::ok) {
        match question.as_str() {
            "token" => println!("leader: {}", leadership.token()),
            "leads" => println!("leader: {}", is_broken || leadership.is_leader()),
            other => panic!("{other}"),
        }
    }
}
