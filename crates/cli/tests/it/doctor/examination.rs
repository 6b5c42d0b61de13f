//! One run of `frazil doctor --json`.

use std::process::Output;

use serde_json::Value;

use crate::shell::Shell;

/// What a run found.
#[derive(Debug)]
pub(crate) struct Examination {
    pub(crate) code: Option<i32>,
    rows: Vec<Value>,
}

impl Examination {
    /// Without ports, which other tests of this machine may use, and with few connections, which
    /// any machine has file descriptors for.
    pub(crate) fn of(shell: &Shell, args: &[&str]) -> Self {
        Self::with(shell, args, &[])
    }

    /// With variables of the environment too.
    pub(crate) fn with(shell: &Shell, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let few =
            ["--http", "127.0.0.1:0", "--grpc", "off", "--resp", "off", "--max-connections", "100"];
        let args = [&["doctor", "--json"][..], &few, args].concat();
        Self::ended(&shell.command(&args).envs(variables.iter().copied()).output().unwrap())
    }

    /// With exactly these arguments.
    pub(crate) fn exactly(shell: &Shell, args: &[&str]) -> Self {
        Self::ended(&shell.output(&[&["doctor", "--json"][..], args].concat()))
    }

    pub(crate) fn ended(output: &Output) -> Self {
        let text = str::from_utf8(&output.stdout).unwrap();
        let rows: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        for row in &rows {
            let object = row.as_object().unwrap();
            assert_eq!(object.keys().collect::<Vec<_>>(), ["check", "detail", "fix", "status"]);
            let is_well = ["ok", "skipped"].contains(&row["status"].as_str().unwrap());
            assert!(!is_well || row["fix"].is_null(), "{row}");
        }
        let code = output.status.code();
        let expected = rows.iter().any(|row| row["status"] == "fail");
        assert_eq!(code, Some(i32::from(expected)), "{output:?}");
        Self { code, rows }
    }

    /// The checks that ended so.
    pub(crate) fn named(&self, status: &str) -> Vec<&str> {
        let rows = self.rows.iter().filter(|row| row["status"] == status);
        rows.map(|row| row["check"].as_str().unwrap()).collect()
    }

    /// The details of a check.
    pub(crate) fn of_check(&self, check: &str) -> impl Iterator<Item = &Value> {
        self.rows.iter().filter(move |row| row["check"] == check)
    }

    pub(crate) fn details(&self, check: &str) -> Vec<String> {
        self.of_check(check).map(|row| row["detail"].as_str().unwrap().to_owned()).collect()
    }

    pub(crate) fn ok(&self, check: &str, detail: &str) {
        self.has(check, "ok", detail, "");
    }

    pub(crate) fn skipped(&self, check: &str, detail: &str) {
        self.has(check, "skipped", detail, "");
    }

    pub(crate) fn warn(&self, check: &str, detail: &str, fix: &str) {
        self.has(check, "warn", detail, fix);
    }

    pub(crate) fn fail(&self, check: &str, detail: &str, fix: &str) {
        self.has(check, "fail", detail, fix);
    }

    /// Whether the pool's rows name this process; a pool that still has room names nobody.
    pub(crate) fn has_holder(&self, process: u32) {
        let rows = self.details("pool").join("\n");
        let named = rows.contains(&format!(":{process}"));
        assert!(named || rows.contains("more than half"), "{rows}");
    }

    fn has(&self, check: &str, status: &str, detail: &str, fix: &str) {
        let fits = |row: &Value| {
            row["status"] == status
                && row["detail"].as_str().unwrap().contains(detail)
                && row["fix"].as_str().unwrap_or_default().contains(fix)
        };
        assert!(self.of_check(check).any(fits), "{status} {check} {detail:?} {fix:?} in {self:#?}");
    }
}
