//! The program of an interface: that of another process of this user, or a new one, and the same
//! one again after an operator has detached it. Called by `queue`.

use std::io;
use std::time::{Duration, Instant};

use crate::ffi;
use crate::sharing;
use crate::socket::patiently;
use crate::steering::{Mode, Steering};

/// Longest time to wait for the answers of other processes.
const PATIENCE: Duration = Duration::from_secs(1);

/// Adopts the program that another process of this user has at the interface, or attaches a new
/// one.
pub(super) fn adopt_or_attach(index: u32, mode: Mode) -> io::Result<Steering> {
    let new = Steering::load()?;
    let deadline = Instant::now() + PATIENCE;
    // Another process may have attached its program without offering it yet, or may be ending, with
    // a program in the other mode.
    let found = patiently(|| match sharing::adopt(index, deadline) {
        Some((steering, its_mode)) => {
            check_mode(its_mode, mode)?;
            // With the entries of that process, which its endpoints keep after an operator has
            // detached the program.
            if !steering.is_attached(index) {
                steering.try_attach(index, mode)?;
            }
            Ok(Some(steering))
        }
        // The new program's maps are empty, so all packets pass to the kernel at first.
        None => new.try_attach(index, mode).map(|()| None),
    })?;
    let Some(steering) = found else {
        return Ok(new);
    };
    steering.forget_dead(ffi::udp_sockets)?;
    Ok(steering)
}

/// Attaches a program again that was detached from interface `index`. If another process that
/// shares the program has done so already, takes that process's link.
///
/// # Errors
/// The kernel's; `ResourceBusy` if the interface has another program.
pub(super) fn attach_again(steering: &Steering, index: u32, mode: Mode) -> io::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    patiently(|| {
        let error = match steering.try_attach(index, mode) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => error,
            outcome => return outcome,
        };
        match sharing::adopt(index, deadline) {
            Some((other, _)) if other.is_attached(index) && steering.share_link(&other)? => Ok(()),
            _ => Err(error),
        }
    })
}

pub(super) fn check_mode(has: Mode, wanted: Mode) -> io::Result<()> {
    if has == wanted {
        return Ok(());
    }
    let why = "other endpoints of this user use the interface in the other mode";
    Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
}

#[cfg(test)]
mod tests;
