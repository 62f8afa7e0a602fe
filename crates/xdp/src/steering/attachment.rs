//! The attachment of the program to an interface: a link, which the kernel removes when its last
//! descriptor is closed. An operator may detach the program before that. Then the kernel keeps a
//! link that leads nowhere, and the program may be attached by another one.
//!
//! Invariant: it has at most one link that leads to an interface. Called by `steering`.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use libc::c_int;

use super::Mode;
use crate::ffi::maps::{facts, pair};
use crate::socket::explain;
use crate::{ffi, refusal};

/// The command of `bpf(2)`.
const LINK_CREATE: c_int = 28;
/// Where a program is attached.
const AT_XDP: u32 = 37;
/// The kind of the link.
const LINK_XDP: u32 = 6;

/// The link of a program.
#[derive(Debug)]
pub(super) struct Attachment(Mutex<Option<Arc<OwnedFd>>>);

impl Attachment {
    /// None yet.
    pub(super) fn none() -> Self {
        Self(Mutex::new(None))
    }

    /// Adopts the link of another process, which must attach the program with this number to
    /// interface `index`, or to none if an operator has detached it.
    ///
    /// # Errors
    /// `InvalidData` if it does not; the kernel's.
    pub(super) fn of(link: OwnedFd, program: u32, index: u32) -> io::Result<Self> {
        let [kind, _, linked, _, at, ..] = facts(link.as_fd())?;
        if [kind, linked] != [LINK_XDP, program] || ![index, NOWHERE].contains(&at) {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self(Mutex::new(Some(Arc::new(link)))))
    }

    /// The link, if there is one.
    pub(super) fn link(&self) -> Option<Arc<OwnedFd>> {
        self.lock().clone()
    }

    /// Whether the link leads to interface `index`.
    pub(super) fn is_at(&self, index: u32) -> bool {
        self.link().is_some_and(|link| place_of(&link) == index)
    }

    /// Attaches a program to interface `index`.
    ///
    /// # Errors
    /// The kernel's; `ResourceBusy` if the interface has a program, or if there is a link to
    /// another interface.
    pub(super) fn attach(&self, program: BorrowedFd<'_>, index: u32, mode: Mode) -> io::Result<()> {
        let flags = match mode {
            Mode::Generic => 1 << 1,
            Mode::Native => 1 << 2,
        };
        let program = program.as_raw_fd().cast_unsigned();
        let mut attributes = [pair(program, index), pair(AT_XDP, flags), 0, 0];
        // SAFETY: the command reads numbers alone.
        let link = unsafe { ffi::bpf(LINK_CREATE, &mut attributes) };
        let link = link.map_err(|error| {
            let why = refusal::of_attachment(error.raw_os_error());
            explain(error, why)
        })?;
        self.keep(Arc::new(ffi::own(link)?))
    }

    /// Takes the link of another owner of the same program.
    ///
    /// # Errors
    /// `ResourceBusy` if there is a link to an interface.
    pub(super) fn share(&self, other: &Self) -> io::Result<()> {
        match other.link() {
            Some(link) => self.keep(link),
            None => Ok(()),
        }
    }

    /// Keeps this link in place of one that leads nowhere. The kernel lets a program be attached to
    /// several interfaces, but one value has one of them.
    fn keep(&self, link: Arc<OwnedFd>) -> io::Result<()> {
        let mut held = self.lock();
        if held.as_ref().is_some_and(|held| place_of(held) != NOWHERE) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        *held = Some(link);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The interface of a link that was detached.
const NOWHERE: u32 = 0;

/// The interface to which a link leads.
fn place_of(link: &OwnedFd) -> u32 {
    facts(link.as_fd()).map_or(NOWHERE, |[_, _, _, _, at, ..]| at)
}
