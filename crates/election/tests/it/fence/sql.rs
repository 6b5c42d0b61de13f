//! The statements on SQLite, which comes with Python.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

use frazil_coord::Token;
use frazil_election::fence::{FencedTable, Parameter, Placeholders, Statement, bigint};
use serde_json::{Map, Value, json};

use super::{Register, faults};

/// Carries out the statements that it is told, a line each, and says how many rows each affected
/// and which rows it gave.
const RUN: &str = "
import json, sqlite3, sys
base = sqlite3.connect(':memory:', isolation_level=None)
for line in sys.stdin:
    done = base.execute(*json.loads(line))
    print(json.dumps([done.rowcount, done.fetchall()]), flush=True)
";

/// A database in a process of its own, which ends with its input.
struct Base {
    python: Child,
    said: BufReader<ChildStdout>,
}

impl Base {
    fn new() -> Self {
        let mut python = Command::new("python3");
        python.args(["-c", RUN]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut python = python.spawn().unwrap();
        let said = BufReader::new(python.stdout.take().unwrap());
        Self { python, said }
    }

    fn run(&mut self, text: &str, parameters: &Value) -> Value {
        let mut stdin = self.python.stdin.as_ref().unwrap();
        writeln!(stdin, "{}", json!([text, parameters])).unwrap();
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{text} failed: see stderr"))
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        drop(self.python.stdin.take());
        let _ = self.python.wait();
    }
}

/// One row that a statement writes.
struct Row {
    base: Base,
    statement: Statement,
}

impl Row {
    fn new(statement: Statement, is_there: bool) -> Self {
        let mut row = Self { base: Base::new(), statement };
        let columns = "\"the app\" TEXT, id INTEGER, \"a \"\"value\"\"\" TEXT, \
                       fence BIGINT NOT NULL DEFAULT 0, PRIMARY KEY (\"the app\", id)";
        row.run(&format!("CREATE TABLE \"the table\" ({columns})"));
        row.run("INSERT INTO \"the table\" VALUES ('other', 1, 'other', 1794745654764)");
        if is_there {
            row.run("INSERT INTO \"the table\" VALUES ('app', 1, '', 0)");
        }
        row
    }

    fn run(&mut self, text: &str) -> Value {
        self.base.run(text, &json!([]))
    }
}

impl Register for Row {
    fn write(&mut self, token: Token, value: &str) -> bool {
        let bound = |parameter: &Parameter| match parameter {
            Parameter::Value(_) => Value::from(value),
            Parameter::Key(name) if name == "id" => Value::from(1),
            Parameter::Key(_) => Value::from("app"),
            Parameter::Fence => Value::from(bigint(token).unwrap()),
        };
        let bound = self.statement.parameters.iter().map(bound);
        let parameters = match self.statement.text.contains('?') {
            true => Value::Array(bound.collect()),
            // SQLite takes them for names.
            false => {
                let named =
                    bound.enumerate().map(|(index, value)| ((index + 1).to_string(), value));
                Value::Object(named.collect::<Map<_, _>>())
            }
        };
        let done = self.base.run(&self.statement.text, &parameters);
        let others = self.run("SELECT count(*) FROM \"the table\" WHERE fence = 1794745654764");
        assert_eq!(others[1][0][0], 1, "the other row is left alone");
        done[0] == 1
    }

    fn value(&mut self) -> String {
        let rows = self.run(
            "SELECT \"a \"\"value\"\"\" FROM \"the table\" WHERE id = 1 AND \
                             \"the app\" = 'app'",
        );
        rows[1][0][0].as_str().unwrap().to_owned()
    }
}

fn table(placeholders: Placeholders) -> FencedTable {
    let table = FencedTable::new("main.the table", &["the app", "id"], "fence").unwrap();
    table.placeholders(placeholders)
}

#[test]
fn a_row_is_written_under_its_highest_token_only() {
    for placeholders in [Placeholders::Dollar, Placeholders::QuestionMark] {
        let table = table(placeholders);
        let update = table.update(&["a \"value\""]).unwrap();
        assert_eq!(faults(&mut Row::new(update, true)), [""; 0]);
        let upsert = table.upsert(&["a \"value\""]).unwrap();
        assert_eq!(faults(&mut Row::new(upsert.clone(), true)), [""; 0]);
        assert_eq!(faults(&mut Row::new(upsert, false)), [""; 0], "a row that is not there yet");
    }
}

#[test]
fn statements_without_a_proper_fence_are_found_out() {
    let table = table(Placeholders::Dollar);
    let update = table.update(&["a \"value\""]).unwrap();
    let upsert = table.upsert(&["a \"value\""]).unwrap();
    for (whole, part, instead) in [
        (&update, " AND \"fence\" <= $2", ""),
        (&update, "<=", "<"),
        (&update, "<=", ">="),
        (&update, "\"fence\" = $2 WHERE", "\"fence\" = \"fence\" + 0 * $2 WHERE"),
        (&upsert, " WHERE held.\"fence\" <= excluded.\"fence\"", ""),
        (&upsert, "<=", "<"),
    ] {
        let text = whole.text.replace(part, instead);
        assert_ne!(text, whole.text, "{part}");
        let mut broken = whole.clone();
        broken.text = text;
        let found = faults(&mut Row::new(broken.clone(), true));
        assert!(!found.is_empty(), "{}", broken.text);
    }
}

#[test]
fn an_update_without_columns_raises_the_fence_and_nothing_else() {
    let raise = table(Placeholders::QuestionMark).update(&[]).unwrap();
    let mut row = Row::new(raise, true);
    assert!(row.write(Token(7), "") && !row.write(Token(6), "") && row.value().is_empty());
}

#[test]
fn a_row_whose_fence_is_null_is_written_by_nobody() {
    let mut row = Row::new(table(Placeholders::Dollar).update(&["a \"value\""]).unwrap(), false);
    row.run("CREATE TABLE loose (id INTEGER PRIMARY KEY, v TEXT, fence BIGINT)");
    row.run("INSERT INTO loose VALUES (1, '', NULL)");
    let update = FencedTable::new("loose", &["id"], "fence").unwrap().update(&["v"]).unwrap();
    let done = row.base.run(&update.text, &json!({"1": "x", "2": 7, "3": 1}));
    assert_eq!(done[0], 0);
    assert!(!row.write(Token(7), "an update finds no row that is not there"));
}
