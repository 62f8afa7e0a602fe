//! Errors that set the exit code of a command. `Misuse` is a request that cannot be carried out
//! as it is: exit code 2, as for an unknown option. `Exit` is an answer that is itself an exit
//! code.

use std::fmt;

/// The error, and the remedy.
#[derive(Debug)]
pub(crate) struct Misuse(pub(crate) String);

/// The exit code of a command that has printed its answer.
#[cfg(feature = "full")]
#[derive(Debug)]
pub(crate) struct Exit(pub(crate) u8);

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

#[cfg(feature = "full")]
impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "exit code {}", self.0)
    }
}

#[cfg(feature = "full")]
impl std::error::Error for Exit {}
