//! The console blocks of a page.

/// A block: commands, and what each prints.
#[derive(Debug)]
pub(crate) struct Block {
    /// Where it begins.
    pub(crate) line: usize,
    pub(crate) marks: Marks,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) command: String,
    /// What the page shows below it.
    pub(crate) output: String,
}

#[derive(Debug, Default)]
pub(crate) struct Marks {
    pub(crate) not_run: Option<String>,
    pub(crate) with_server: bool,
    pub(crate) exact: bool,
    pub(crate) exit: i32,
    pub(crate) runs_on: bool,
}

impl Marks {
    fn parse(line: &str) -> Result<Self, String> {
        let mut marks = Self::default();
        let said = line.strip_prefix("<!-- console: ").and_then(|rest| rest.strip_suffix("-->"));
        let Some(said) = said else { return Ok(marks) };
        if let Some(reason) = said.trim().strip_prefix("not run:") {
            if reason.trim().is_empty() {
                return Err("a block that is not run says why".to_owned());
            }
            marks.not_run = Some(reason.trim().to_owned());
            return Ok(marks);
        }
        for mark in said.split(',').map(str::trim) {
            match mark.strip_prefix("exit ").map(str::parse) {
                Some(Ok(code)) => marks.exit = code,
                _ if mark == "with a server" => marks.with_server = true,
                _ if mark == "exact" => marks.exact = true,
                _ if mark == "runs on" => marks.runs_on = true,
                _ => return Err(format!("no mark is called `{mark}`")),
            }
        }
        Ok(marks)
    }
}

pub(crate) fn blocks(page: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = page.lines().enumerate();
    let mut before = "";
    while let Some((number, line)) = lines.next() {
        if line == "```console" {
            let marks = Marks::parse(before).map_err(|error| format!("{}: {error}", number + 1))?;
            let mut text = Vec::new();
            loop {
                match lines.next() {
                    Some((_, "```")) => break,
                    Some((_, line)) => text.push(line),
                    None => return Err(format!("{}: the block does not end", number + 1)),
                }
            }
            blocks.push(Block { line: number + 1, marks, steps: steps(&text) });
        }
        before = line;
    }
    Ok(blocks)
}

fn steps(lines: &[&str]) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut goes_on = false;
    for line in lines {
        let command = line.strip_prefix("$ ");
        match (steps.last_mut(), command) {
            (_, Some(command)) => {
                steps.push(Step { command: command.to_owned(), output: String::new() });
            }
            (Some(last), None) if goes_on => last.command.push_str(&format!("\n{line}")),
            (Some(last), None) => last.output.push_str(&format!("{line}\n")),
            (None, None) => {}
        }
        goes_on = (goes_on || command.is_some()) && line.ends_with('\\');
    }
    steps
}
