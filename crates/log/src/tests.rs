//! Events from `tracing` to the line.

use std::cell::Cell;

use super::*;

thread_local! {
    /// Each test has its own thread, and so its own time.
    static ELAPSED: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn told() -> Now {
    Now { unix_ms: 1_794_763_871_988, elapsed: ELAPSED.get() }
}

fn pass(seconds: u64) {
    ELAPSED.set(ELAPSED.get() + Duration::from_secs(seconds));
}

#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sink {
    fn lines(&self) -> Vec<String> {
        let bytes = std::mem::take(&mut *self.0.lock());
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }
}

/// Runs with a log of its own.
fn with_log(filter: &str, form: Form, run: impl FnOnce(&Log, &Sink)) {
    let sink = Sink::default();
    let (repeats, writer) = (Mutex::default(), Box::new(sink.clone()) as Box<dyn Write + Send>);
    let lines = Lines { form, is_coloured: false, repeats, now: told, sink: Mutex::new(writer) };
    let (log, subscriber) = Log::new(&filter.parse().unwrap(), lines);
    tracing::subscriber::with_default(subscriber, || run(&log, &sink));
}

#[test]
fn an_event_is_a_line_in_either_form() {
    with_log("info", Form::Text, |_, sink| {
        tracing::info!(most = 7_u64, on = true, name = "a b", "it {}", "works");
        assert_eq!(
            sink.lines(),
            ["2026-11-15T17:31:11.988Z INFO frazil_log::tests: it works most=7 on=true \
              name=\"a b\""]
        );
    });
    with_log("info", Form::Json, |_, sink| {
        tracing::warn!(error = %"line\nbreak", "failed");
        let line = &sink.lines()[0];
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["fields"]["error"], "line\nbreak", "{line}");
        assert_eq!((&object["level"], &object["message"]), (&"WARN".into(), &"failed".into()));
    });
}

#[test]
fn the_level_decides_and_can_change() {
    with_log("info", Form::Text, |log, sink| {
        let events = || {
            tracing::debug!("ours");
            tracing::info!(target: "h2::proto", "theirs");
        };
        events();
        assert_eq!(sink.lines().len(), 0);
        log.set_filter(&"debug,h2=info".parse().unwrap());
        events();
        assert_eq!(sink.lines().len(), 2);
        log.set_filter(&"off".parse().unwrap());
        events();
        assert_eq!(sink.lines().len(), 0);
    });
}

fn trouble(error: &str) {
    tracing::warn!(error, "the store is away");
}

#[test]
fn a_repeat_is_counted_and_the_count_is_written_when_its_window_ends() {
    with_log("info", Form::Text, |log, sink| {
        (0..5).for_each(|_| trouble("a"));
        assert_eq!(sink.lines().len(), 1);
        log.catch_up();
        assert_eq!(sink.lines().len(), 0, "the window is still open");
        pass(10);
        log.catch_up();
        let lines = sink.lines();
        assert!(lines[0].ends_with("repeated 4 times: the store is away repeated=4"), "{lines:?}");
        trouble("a");
        assert_eq!(sink.lines().len(), 1, "a new window begins");
        log.catch_up();
        pass(10);
        log.catch_up();
        assert_eq!(sink.lines().len(), 0, "nothing was held back");
    });
}

#[test]
fn the_next_event_after_the_window_brings_the_count_with_it() {
    with_log("info", Form::Text, |_, sink| {
        (0..3).for_each(|_| trouble("a"));
        pass(11);
        tracing::info!("another");
        let lines = sink.lines();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[1].contains("repeated 2 times") && lines[2].contains("another"), "{lines:?}");
    });
}

#[test]
fn the_end_brings_every_count() {
    with_log("info", Form::Json, |log, sink| {
        (0..2).for_each(|_| trouble("a"));
        log.finish();
        let line = &sink.lines()[1];
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(object["fields"]["repeated"], 1, "{line}");
    });
}

#[test]
fn a_storm_that_differs_in_its_fields_alone_is_held_back_after_a_few() {
    with_log("info", Form::Text, |log, sink| {
        (0..1000).for_each(|number| trouble(&number.to_string()));
        assert_eq!(sink.lines().len(), 8);
        log.finish();
        assert!(sink.lines()[0].contains("repeated 992 times"));
    });
}

#[test]
fn changes_of_state_and_other_messages_are_never_held_back() {
    with_log("info", Form::Text, |log, sink| {
        for _ in 0..3 {
            for state in ["ready", "refusing"] {
                tracing::info!(state, "the node changed");
            }
        }
        assert_eq!(sink.lines().len(), 6);
        (0..1000).for_each(|number| tracing::info!("message {number}"));
        assert_eq!(sink.lines().len(), 1000);
        log.finish();
        assert_eq!(sink.lines().len(), 0);
    });
}

#[test]
fn what_somebody_did_is_written_each_time() {
    with_log("info", Form::Text, |_, sink| {
        for _ in 0..20 {
            tracing::info!(target: "frazil_server::audit", by = "ops", "the node was told to drain");
        }
        assert_eq!(sink.lines().len(), 20);
    });
}

#[test]
fn wrong_keys_are_counted_when_they_repeat_unless_they_are_like_a_real_one() {
    let refused = |what: &str, by: &str, message: &str| {
        tracing::warn!(target: "frazil_server::audit", refused = what, by, "{message}");
    };
    with_log("info", Form::Text, |log, sink| {
        (0..20).for_each(|_| refused("key", "?", "the key is unknown"));
        assert_eq!(sink.lines().len(), 1);
        (0..20).for_each(|_| refused("key", "orders", "the key is unknown"));
        assert_eq!(sink.lines().len(), 20, "somebody tries a real key");
        // A key that may not do something is told of once, and so is the next one.
        for name in ["orders", "users"] {
            let message = format!("the key of {name} does not have the role admin");
            (0..20).for_each(|_| refused("role", name, &message));
            assert_eq!(sink.lines().len(), 1, "{name}");
        }
        log.finish();
        let counts = sink.lines();
        assert!(counts.iter().all(|line| line.contains("repeated 19 times")), "{counts:?}");
        assert_eq!(counts.len(), 3);
    });
}

#[test]
fn who_debugs_sees_everything() {
    with_log("debug", Form::Text, |_, sink| {
        (0..50).for_each(|_| tracing::debug!("a step"));
        assert_eq!(sink.lines().len(), 50);
    });
}

#[test]
fn what_is_announced_is_an_object_in_json_and_plain_in_text() {
    with_log("off", Form::Text, |log, sink| {
        log.announce_with("frazil\n", &[("HTTP", "http", "http://127.0.0.1:1".to_owned())]);
        assert_eq!(sink.lines(), ["frazil\\n", "  HTTP  http://127.0.0.1:1"]);
    });
    with_log("off", Form::Json, |log, sink| {
        log.announce_with("frazil", &[("HTTP", "http", "http://127.0.0.1:1".to_owned())]);
        let lines = sink.lines();
        assert!(lines.len() == 1 && lines[0].contains(r#""level":"INFO""#), "{lines:?}");
        assert!(lines[0].ends_with(r#""fields":{"http":"http://127.0.0.1:1"}}"#), "{lines:?}");
    });
}
