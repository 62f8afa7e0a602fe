//! The program `dunlin` with arguments, for the tests of its commands. The program ignores the
//! settings file that the environment names.

#[cfg(any(feature = "index", feature = "sequencer"))]
pub(crate) mod server;

use std::process::{Command, Stdio};

/// A command with pipes for its output, and without an input.
pub(crate) fn dunlin(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dunlin"));
    command
        .args(args)
        .env_remove("DUNLIN_CONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
