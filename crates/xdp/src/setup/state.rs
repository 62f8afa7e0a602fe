//! The facts that decide whether `xdp` can be used here: the kernel's sockets, and the state of an
//! interface. Changes nothing, and needs no privilege. Called by `dunlin info`.

use std::ffi::CString;
use std::io;
use std::time::{Duration, Instant};

use crate::roads::{Attached, Features, Tables};
use crate::steering::Mode;
use crate::{ffi, refusal, sharing};

/// Longest time to wait for the process that has a program.
const PATIENCE: Duration = Duration::from_millis(200);

/// The state of an interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct State {
    /// Whether an operator has set it up. It may have no carrier.
    pub is_up: bool,
    /// The owner of its XDP program, if it has one.
    pub program: Option<Owner>,
    /// The kinds of XDP that its driver has; `None` if the kernel does not tell.
    pub features: Option<Features>,
}

/// The owner of an XDP program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Owner {
    /// A process of this user, which shares it.
    OfUser,
    /// Other software, another user, a daemon (`dunlin xdp-setup`), or a process of this user that
    /// does not answer soon. The mode of the program; `None` if it runs in the card, or if there
    /// are several programs.
    Other(Option<Mode>),
}

/// Checks that the kernel has AF_XDP sockets.
///
/// # Errors
/// `Unsupported` if it has none.
pub fn check_kernel() -> io::Result<()> {
    let outcome = ffi::socket(libc::AF_XDP, libc::SOCK_RAW, 0).map(drop);
    check_answer(outcome.err().and_then(|error| error.raw_os_error()))
}

/// Reads the kernel's answer to a request for a socket. For other errors, such as that of a missing
/// capability, the kernel must have the sockets.
fn check_answer(code: Option<i32>) -> io::Result<()> {
    match code {
        Some(libc::EAFNOSUPPORT) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            refusal::of_socket(code),
        )),
        _ => Ok(()),
    }
}

/// The state of an interface in the caller's network namespace.
///
/// # Errors
/// The kernel's; `InvalidInput` if it is not one of Ethernet.
pub fn state_of(interface: &str) -> io::Result<State> {
    let name = CString::new(interface)?;
    let index = ffi::interface_index(&name)?;
    let (_, link) = Tables::open(index)?;
    let owner = |mode| match sharing::adopt(index, Instant::now() + PATIENCE) {
        Some((steering, _)) if steering.is_attached(index) => Owner::OfUser,
        _ => Owner::Other(mode),
    };
    let program = match link.program {
        Attached::Nothing => None,
        Attached::Program(_, mode) => Some(owner(mode)),
        Attached::Several => Some(owner(None)),
    };
    Ok(State {
        is_up: link.is_up,
        program,
        features: Features::of(index),
    })
}

#[cfg(test)]
mod tests;
