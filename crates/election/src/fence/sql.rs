//! Statements that write a row only under the highest token that the row has seen.

use std::collections::BTreeSet;
use std::fmt;

use frazil_coord::Token;

/// PostgreSQL cuts longer names off, and what was meant to be two names could be one.
const NAME_BYTES_MAX: usize = 63;

/// A table whose rows remember the highest token that wrote them, in a column of their own
/// (`fence BIGINT NOT NULL DEFAULT 0`).
///
/// The statements suit PostgreSQL, SQLite and others that quote names with `"`. Names are quoted as
/// they are given, and PostgreSQL then tells capitals from small letters.
///
/// **No row affected means that the write was refused** (or that an update found no such row).
/// MySQL counts the rows that a statement changed and not those that it found, unless the
/// connection asks for the latter; there the same write twice looks refused.
///
/// ```
/// use frazil_election::fence::{FencedTable, Parameter, Placeholders};
///
/// let accounts = FencedTable::new("accounts", &["id"], "fence")?;
/// let update = accounts.update(&["balance"])?;
/// assert_eq!(
///     update.text,
///     r#"UPDATE "accounts" SET "balance" = $1, "fence" = $2 WHERE "id" = $3 AND "fence" <= $2"#
/// );
/// assert_eq!(
///     update.parameters,
///     [Parameter::Value("balance".into()), Parameter::Fence, Parameter::Key("id".into())]
/// );
/// let update = accounts.placeholders(Placeholders::QuestionMark).update(&["balance"])?;
/// assert!(update.text.ends_with(r#"WHERE "id" = ? AND "fence" <= ?"#));
/// assert_eq!(update.parameters.last(), Some(&Parameter::Fence));
/// # Ok::<(), frazil_election::fence::StatementError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FencedTable {
    table: String,
    keys: Vec<String>,
    fence: String,
    placeholders: Placeholders,
}

/// How parameters are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Placeholders {
    /// `$1`, `$2`: PostgreSQL. SQLite takes them as names.
    #[default]
    Dollar,
    /// `?`, each a parameter of its own: SQLite, ODBC, JDBC.
    QuestionMark,
}

/// A statement with what to bind to its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statement {
    /// The statement.
    pub text: String,
    /// What each parameter is, in their order.
    pub parameters: Vec<Parameter>,
}

/// What to bind to a parameter.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameter {
    /// The value of a column.
    Value(String),
    /// The value of a column of the key.
    Key(String),
    /// The token; see [`bigint`].
    Fence,
}

/// Why there is no such statement.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatementError {
    /// A name is empty.
    EmptyName,
    /// A name is longer than databases take.
    LongName(String),
    /// A name has a character that cannot be quoted.
    ControlCharacter(String),
    /// Without a key a statement would write every row.
    NoKey,
    /// A column has two meanings.
    Repeated(String),
}

impl FencedTable {
    /// A table (or `schema.table`) with the columns of its key and the one that holds the fence.
    /// For [`upsert`](Self::upsert) the key must be the primary key or have a unique index.
    ///
    /// # Errors
    /// If a name cannot be one, if there is no key, or if a column is named twice.
    pub fn new(table: &str, keys: &[&str], fence: &str) -> Result<Self, StatementError> {
        let table = table.split('.').map(quoted).collect::<Result<Vec<_>, _>>()?.join(".");
        for name in keys.iter().chain([&fence]) {
            quoted(name)?;
        }
        if keys.is_empty() {
            return Err(StatementError::NoKey);
        }
        distinct(keys.iter().copied().chain([fence]))?;
        Ok(Self {
            table,
            keys: keys.iter().map(|key| (*key).to_owned()).collect(),
            fence: fence.to_owned(),
            placeholders: Placeholders::default(),
        })
    }

    /// The same with parameters written otherwise.
    #[must_use]
    pub fn placeholders(self, placeholders: Placeholders) -> Self {
        Self { placeholders, ..self }
    }

    /// Writes columns of a row that is there. Without columns it only raises the fence, which is
    /// what a new leader does before it reads the row.
    ///
    /// # Errors
    /// If a name cannot be one, or if a column is named twice or is the key or the fence.
    pub fn update(&self, columns: &[&str]) -> Result<Statement, StatementError> {
        self.check(columns)?;
        let mut parts = Parts::new(self.placeholders);
        let mut set = Vec::new();
        for column in columns {
            let bound = parts.bind(Parameter::Value((*column).to_owned()));
            set.push(format!("{} = {bound}", quoted(column)?));
        }
        let fence = quoted(&self.fence)?;
        set.push(format!("{fence} = {}", parts.bind(Parameter::Fence)));
        let mut conditions = Vec::new();
        for key in &self.keys {
            let bound = parts.bind(Parameter::Key(key.clone()));
            conditions.push(format!("{} = {bound}", quoted(key)?));
        }
        conditions.push(format!("{fence} <= {}", parts.bind(Parameter::Fence)));
        let (table, set, conditions) = (&self.table, set.join(", "), conditions.join(" AND "));
        Ok(parts.statement(format!("UPDATE {table} SET {set} WHERE {conditions}")))
    }

    /// Writes a row, whether it is there or not.
    ///
    /// # Errors
    /// As for [`update`](Self::update).
    pub fn upsert(&self, columns: &[&str]) -> Result<Statement, StatementError> {
        self.check(columns)?;
        let mut parts = Parts::new(self.placeholders);
        let (mut names, mut values, mut set) = (Vec::new(), Vec::new(), Vec::new());
        for key in &self.keys {
            names.push(quoted(key)?);
            values.push(parts.bind(Parameter::Key(key.clone())));
        }
        let target = names.join(", ");
        for column in columns {
            names.push(quoted(column)?);
            values.push(parts.bind(Parameter::Value((*column).to_owned())));
        }
        let fence = quoted(&self.fence)?;
        names.push(fence.clone());
        values.push(parts.bind(Parameter::Fence));
        for name in &names[self.keys.len()..] {
            set.push(format!("{name} = excluded.{name}"));
        }
        let (table, set) = (&self.table, set.join(", "));
        let (names, values) = (names.join(", "), values.join(", "));
        Ok(parts.statement(format!(
            "INSERT INTO {table} AS held ({names}) VALUES ({values}) ON CONFLICT ({target}) \
             DO UPDATE SET {set} WHERE held.{fence} <= excluded.{fence}"
        )))
    }

    fn check(&self, columns: &[&str]) -> Result<(), StatementError> {
        for column in columns {
            quoted(column)?;
        }
        let own = self.keys.iter().map(String::as_str).chain([self.fence.as_str()]);
        distinct(own.chain(columns.iter().copied()))
    }
}

/// A token as the signed number that databases store. Tokens follow Unix time in milliseconds, so
/// only one that was made up does not fit.
#[must_use]
pub fn bigint(token: Token) -> Option<i64> {
    i64::try_from(token.0).ok()
}

/// Numbers the parameters as they are written down.
struct Parts {
    placeholders: Placeholders,
    parameters: Vec<Parameter>,
}

impl Parts {
    fn new(placeholders: Placeholders) -> Self {
        Self { placeholders, parameters: Vec::new() }
    }

    fn bind(&mut self, parameter: Parameter) -> String {
        if self.placeholders == Placeholders::QuestionMark {
            self.parameters.push(parameter);
            return "?".to_owned();
        }
        let known = self.parameters.iter().position(|bound| *bound == parameter);
        let index = known.unwrap_or_else(|| {
            self.parameters.push(parameter);
            self.parameters.len() - 1
        });
        format!("${}", index + 1)
    }

    fn statement(self, text: String) -> Statement {
        Statement { text, parameters: self.parameters }
    }
}

/// A name in quotation marks, so that it means itself whatever is in it.
fn quoted(name: &str) -> Result<String, StatementError> {
    if name.is_empty() {
        Err(StatementError::EmptyName)
    } else if name.len() > NAME_BYTES_MAX {
        Err(StatementError::LongName(name.chars().take(NAME_BYTES_MAX).collect()))
    } else if name.contains(char::is_control) {
        Err(StatementError::ControlCharacter(name.to_owned()))
    } else {
        Ok(format!("\"{}\"", name.replace('"', "\"\"")))
    }
}

/// Names that differ only in their case are one column to some databases.
fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), StatementError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name.to_lowercase()) {
            return Err(StatementError::Repeated(name.to_owned()));
        }
    }
    Ok(())
}

impl fmt::Display for StatementError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EmptyName => f.write_str("a table or column has no name: write one"),
            Self::LongName(name) => write!(
                f,
                "the name {name:?}... is longer than {NAME_BYTES_MAX} bytes, which databases cut \
                 off: use a shorter one"
            ),
            Self::ControlCharacter(name) => {
                write!(f, "the name {name:?} has control characters: use one without")
            }
            Self::NoKey => f.write_str("name the columns of the key: else every row is written"),
            Self::Repeated(name) => {
                write!(
                    f,
                    "the column {name:?} is named twice: name it once, as key, fence or value"
                )
            }
        }
    }
}

impl std::error::Error for StatementError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_means_itself_whatever_is_in_it() {
        let table = FencedTable::new("a\"; DROP TABLE b; --.t", &["k"], "f").unwrap();
        let text = table.update(&["v\" = 1 --"]).unwrap().text;
        assert!(text.starts_with(r#"UPDATE "a""; DROP TABLE b; --"."t" SET "v"" = 1 --" = $1"#));
    }

    #[test]
    fn names_that_cannot_be_are_told_apart() {
        let of = |table: &str, keys: &[&str], fence: &str| FencedTable::new(table, keys, fence);
        assert_eq!(of("", &["k"], "f"), Err(StatementError::EmptyName));
        assert_eq!(of("a..b", &["k"], "f"), Err(StatementError::EmptyName));
        assert_eq!(of("t", &[], "f"), Err(StatementError::NoKey));
        assert_eq!(of("t", &["k", "K"], "f"), Err(StatementError::Repeated("K".into())));
        assert_eq!(of("t", &["f"], "f"), Err(StatementError::Repeated("f".into())));
        let control = of("t", &["k\0"], "f");
        assert_eq!(control, Err(StatementError::ControlCharacter("k\0".into())));
        assert!(matches!(of(&"t".repeat(64), &["k"], "f"), Err(StatementError::LongName(_))));
        let table = of("t", &["k"], "f").unwrap();
        for column in ["k", "f", "F"] {
            assert_eq!(table.update(&[column]), Err(StatementError::Repeated(column.into())));
            assert_eq!(table.upsert(&[column]), Err(StatementError::Repeated(column.into())));
        }
    }

    #[test]
    fn a_token_that_was_made_up_fits_no_column() {
        assert_eq!(bigint(Token(1_794_745_654_763)), Some(1_794_745_654_763));
        assert_eq!(bigint(Token(u64::MAX)), None);
    }
}
