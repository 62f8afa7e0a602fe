//! Output of commands: to the standard output, whose reader may have seen enough, and about errors.
//! Used by every command that prints.

use std::io::{self, Write};

use harness::signal::Interrupted;

/// To the standard output, at once: a reader may wait at the other end of a pipe.
///
/// # Errors
/// [`Interrupted`] if the reader has closed the pipe, as `head` does: that ends a command like
/// Ctrl-C does, without a word. Otherwise what the system said.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(Interrupted.into()),
        other => Ok(other?),
    }
}

/// An error with its causes, none of which is said twice: some errors name theirs themselves.
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
