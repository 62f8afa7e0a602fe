//! The parts that `dunlin list` and `dunlin call` share: they open the server's reflection, and
//! turn the reasons why there is no answer into exit codes.

use std::time::Duration;

use dunlin::settings::Configurable;
use dunlin::{ReflectError, Reflector, Settings};

use crate::commands::target::{asker, is_no_address, resolve};
use crate::misuse::{Exit, Misuse};

/// The exit code of a server that does not answer in time.
const UNREACHABLE: u8 = 3;
/// The exit code of a server without the method.
const NO_SUCH_METHOD: u8 = 4;
/// The exit code of a server that does not describe its methods.
const NO_REFLECTION: u8 = 5;
/// The exit code of a call without a result.
const FAILED: u8 = 6;

/// Opens sessions with the server, and waits at most `patience` for it.
///
/// # Errors
/// [`Misuse`] if the text is not an address; [`Exit`] if the server has no answer.
pub(crate) fn open<T: Configurable>(
    settings: &Settings,
    address: &str,
    patience: Duration,
) -> anyhow::Result<Reflector<T>> {
    let to = match resolve(address) {
        Ok(to) => to,
        Err(error) if is_no_address(&error) => return Err(Misuse(format!("{error:#}")).into()),
        Err(error) => return Err(exit(UNREACHABLE, &format!("{error:#}"))),
    };
    let from = asker::<T>(settings, to)?;
    Reflector::connect(from, to, patience).map_err(refuse)
}

/// Prints the reason why there is no answer. Returns an error with its exit code.
pub(crate) fn refuse(error: ReflectError) -> anyhow::Error {
    let code = match error {
        ReflectError::Misfit(misfit) => return Misuse(misfit).into(),
        ReflectError::NoReflection => NO_REFLECTION,
        ReflectError::NoSuchMethod(_) => NO_SUCH_METHOD,
        ReflectError::Call(_) | ReflectError::BadResponse(_) | ReflectError::Unread(_) => FAILED,
        _ => UNREACHABLE,
    };
    exit(code, &error.to_string())
}

fn exit(code: u8, reason: &str) -> anyhow::Error {
    eprintln!("dunlin: {reason}");
    Exit(code).into()
}
