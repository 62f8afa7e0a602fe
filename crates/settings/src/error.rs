//! Why settings are refused: every wrong place, and the value expected there.

use std::fmt;
use std::sync::Arc;

/// Where a value comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Source {
    /// The option is not set.
    Default,
    /// A file. Lines and columns count from 1, columns in characters.
    File {
        /// The path as it was given.
        file: Arc<str>,
        /// The line of the option's key or value.
        line: usize,
        /// The column in that line.
        column: usize,
    },
    /// An environment variable of this name.
    Variable(String),
    /// The program itself. The text names the place in the program, such as `--set`.
    Program(Arc<str>),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line, column } => write!(f, "{file}:{line}:{column}"),
            Self::Variable(name) => f.write_str(name),
            Self::Program(what) => f.write_str(what),
        }
    }
}

/// One mistake.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The place of the mistake.
    pub source: Source,
    /// The wrong value, the expected ones, and the nearest name if a name is wrong.
    pub what: String,
}

/// Settings that are refused. Shows one line for each [`Problem`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SettingsError {
    pub(super) problems: Vec<Problem>,
}

impl SettingsError {
    /// All mistakes, in the order in which they were found.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    pub(super) fn one(source: Source, what: String) -> Self {
        let problems = vec![Problem { source, what }];
        Self { problems }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{}: {}", problem.source, problem.what)?;
        }
        Ok(())
    }
}

impl std::error::Error for SettingsError {}
