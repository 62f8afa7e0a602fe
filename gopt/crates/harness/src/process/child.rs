//! The child's side: its parameters come in, its reports go out.

use std::io::{BufRead, Write};

use anyhow::Context;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::Line;

/// The process that started this one. Two pipes connect it with this process.
#[derive(Debug)]
pub struct Parent;

impl Parent {
    /// The next line from the parent. The first one has the parameters.
    ///
    /// # Errors
    /// The parent has ended, or sent a line that this role does not expect.
    pub fn receive<T: DeserializeOwned>(&self) -> anyhow::Result<T> {
        let mut line = String::new();
        std::io::stdin()
            .lock()
            .read_line(&mut line)
            .context("cannot read parameters")?;
        serde_json::from_str(&line).with_context(|| format!("unexpected parameters {line:?}"))
    }

    /// Reports one line.
    ///
    /// # Errors
    /// The parent has ended.
    pub fn say<T: Serialize>(&self, report: &T) -> anyhow::Result<()> {
        write(&Line::Said(report))
    }

    /// Reports why this process ends.
    ///
    /// # Errors
    /// The parent has ended.
    pub(crate) fn fail(&self, error: &anyhow::Error) -> anyhow::Result<()> {
        write(&Line::<()>::Failed(format!("{error:#}")))
    }
}

fn write<T: Serialize>(line: &Line<T>) -> anyhow::Result<()> {
    let mut text = serde_json::to_string(line)?;
    text.push('\n');
    let mut stdout = std::io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .context("the parent has ended")
}
