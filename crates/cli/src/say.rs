//! Prints the output of commands to the standard output, whose reader may close it early, and
//! formats errors. Used by every command that prints.

use std::io::{self, Write};

use harness::signal::Interrupted;

/// Writes to the standard output and flushes it, because a reader may wait at the other end of a
/// pipe.
///
/// # Errors
/// [`Interrupted`] if the reader has closed the pipe, as `head` does: that ends a command silently,
/// like Ctrl-C. Otherwise the system's error.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    print_bytes(text.as_bytes())
}

/// Writes bytes that need not be text, like [`print()`].
///
/// # Errors
/// The errors of [`print()`].
pub(crate) fn print_bytes(bytes: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Interrupted.into()),
        other => Ok(other?),
    }
}

/// An error with its causes, each only once: some errors name their causes themselves.
pub(crate) fn with_causes(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text += ": ";
            text += &cause;
        }
    }
    text
}

#[cfg(test)]
mod tests;
