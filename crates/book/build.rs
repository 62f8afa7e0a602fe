//! Takes the programs out of the pages. The second program of `docs/channel.md` becomes a file of
//! the output folder, which a module of `tests/recipes/channel.rs` includes and runs. A program
//! that no test includes is an error.
//!
//! A page names servers that do not exist, and ports that another test may use. So a text of the
//! form `"host:318…"` and the path of a file in `/etc` are replaced by the call `crate::at("…")`,
//! which returns the place that the test has named.

use std::error::Error;
use std::{env, fs};

/// The pages with recipes.
const PAGES: [&str; 9] = [
    "async",
    "channel",
    "configuration",
    "poll",
    "reflection",
    "server",
    "services",
    "tokio",
    "tuning",
];

fn main() -> Result<(), Box<dyn Error>> {
    let (root, out) = (env::var("CARGO_MANIFEST_DIR")?, env::var("OUT_DIR")?);
    for page in PAGES {
        let path = format!("{root}/../../docs/{page}.md");
        let test = format!("{root}/tests/recipes/{page}.rs");
        println!("cargo::rerun-if-changed={path}");
        println!("cargo::rerun-if-changed={test}");
        let tests = fs::read_to_string(test)?;
        for (number, program) in (1..).zip(programs(&fs::read_to_string(path)?)) {
            let name = format!("/{page}_{number}.rs");
            if !tests.contains(&format!("\"{name}\"")) {
                return Err(format!("no test runs program {number} of docs/{page}.md").into());
            }
            fs::write(out.clone() + &name, program)?;
        }
    }
    Ok(())
}

/// The blocks of Rust on a page.
fn programs(page: &str) -> Vec<String> {
    let mut programs = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if line == "```rust" || line.starts_with("```rust,") {
            let block = lines.by_ref().take_while(|line| *line != "```");
            let shown = block.map(|line| line.strip_prefix("# ").unwrap_or(line));
            programs.push(shown.map(|line| placed(line) + "\n").collect());
        }
    }
    programs
}

/// A line in which each place has been replaced.
fn placed(line: &str) -> String {
    let mut parts: Vec<String> = line.split('"').map(str::to_owned).collect();
    let is_place = |text: &str| text.contains(":318") || text.starts_with("/etc/");
    for at in (1..parts.len()).step_by(2) {
        let text = &parts[at];
        parts[at] = match is_place(text) {
            true => format!("crate::at(\"{text}\")"),
            false => format!("\"{text}\""),
        };
    }
    parts.concat()
}
