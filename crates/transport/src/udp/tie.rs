//! The tie between a socket and its only peer, made by connect(2). The kernel then looks up the
//! route to the peer once instead of for each datagram, and finds the socket of an incoming
//! datagram sooner. Together, both save a tenth of a round trip over loopback.
//!
//! | stage | transitions |
//! |---|---|
//! | loose | the endpoint has one peer: watching |
//! | watching | a datagram comes from the peer's address: tied; only others come: loose |
//! | tied | the endpoint may get another peer, or loses this one: loose |
//!
//! The kernel drops a datagram for a tied socket that is not from the peer's address. So the
//! endpoint must first have seen that address as a source: a peer with several addresses may send
//! from an address that it has not offered, and so may a router that rewrites addresses. If the
//! address changes later, the sessions fail, and new ones begin untied.
//!
//! Invariant: while the socket is tied, the endpoint has one peer and no offer without an answer.
//! `tx`, which knows the peers, unties it before another one can send; `rx`, which sees sources,
//! ties it. Owned by `socket`.

use std::net::{IpAddr, SocketAddr};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::addr::RawAddr;
use super::ffi;

const LOOSE: u8 = 0;
const WATCHING: u8 = 1;
const TIED: u8 = 2;

/// After this many datagrams from other addresses, the socket stays loose. A few may come from
/// strangers.
const MOST_OTHERS: u32 = 16;

/// A peer to which a socket may be tied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Aim {
    /// The peer's address.
    pub(super) peer: RawAddr,
    /// Our address to which the peer sends.
    pub(super) own: IpAddr,
}

#[derive(Debug, Default)]
pub(super) struct Tie {
    stage: AtomicU8,
    aim: Mutex<Option<(Aim, u32)>>,
}

impl Tie {
    #[inline]
    pub(super) fn is_tied(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == TIED
    }

    /// Whether sources of datagrams must be passed to [`Self::on_source`].
    #[inline]
    pub(super) fn is_watching(&self) -> bool {
        self.stage.load(Ordering::Relaxed) == WATCHING
    }

    /// Takes the endpoint's only peer. `None`: it has none or several, or may get another.
    pub(super) fn take_aim(&self, fd: BorrowedFd<'_>, only: Option<Aim>) {
        let mut aim = self.aim();
        if aim.map(|(aim, _)| aim) == only {
            return;
        }
        if self.is_tied() {
            ffi::untie(fd);
        }
        *aim = only.map(|only| (only, 0));
        self.enter(if only.is_some() { WATCHING } else { LOOSE });
    }

    /// Notes that a datagram has come from this address.
    #[cold]
    pub(super) fn on_source(&self, fd: BorrowedFd<'_>, source: &RawAddr) {
        let mut aim = self.aim();
        let Some((aim, others)) = aim.as_mut().filter(|_| self.is_watching()) else {
            return;
        };
        if place_of(source) != place_of(&aim.peer) {
            *others += 1;
            if *others == MOST_OTHERS {
                self.enter(LOOSE);
            }
            return;
        }
        // If the socket is not bound to an address, the kernel chooses our address by the route,
        // which need not be the address to which the peer sends.
        let is_own = |at: SocketAddr| at.ip() == aim.own;
        let is_tied = ffi::tie(fd, &aim.peer).is_ok();
        if is_tied && ffi::local_addr(fd).is_ok_and(is_own) {
            self.enter(TIED);
        } else {
            ffi::untie(fd);
            self.enter(LOOSE);
        }
    }

    fn enter(&self, stage: u8) {
        self.stage.store(stage, Ordering::Relaxed);
    }

    fn aim(&self) -> MutexGuard<'_, Option<(Aim, u32)>> {
        self.aim.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Address and port, in one form for both families.
fn place_of(addr: &RawAddr) -> Option<(IpAddr, u16)> {
    let addr = addr.decode()?;
    Some((addr.ip().to_canonical(), addr.port()))
}

#[cfg(test)]
mod tests;
