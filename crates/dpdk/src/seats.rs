//! The endpoints of a device, by their ports of UDP.
//!
//! Invariant: an endpoint has its port from its opening to its drop. Owned by `port`.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::inbox::Inbox;

/// The first of the ports that are chosen for endpoints (RFC 6335).
const FIRST_PORT: u16 = 49_152;

/// The endpoints.
#[derive(Debug)]
pub(crate) struct Seats {
    inboxes: Mutex<BTreeMap<u16, Arc<Inbox>>>,
    /// The offset of the port to choose next.
    next: AtomicU32,
}

impl Seats {
    /// No endpoints yet. Processes choose different ports first, so that packets for an endpoint
    /// that has gone rarely reach another.
    pub(crate) fn new() -> Self {
        Self {
            inboxes: Mutex::default(),
            next: AtomicU32::new(std::process::id().wrapping_mul(251)),
        }
    }

    /// Gives an endpoint the port `wanted`, or a free one if that is 0, and the inbox that `make`
    /// makes for this port. `make` gets the number of endpoints too.
    ///
    /// # Errors
    /// `AddrInUse` if another endpoint has it, or all are taken; or the error of `make`.
    pub(crate) fn take(
        &self,
        wanted: u16,
        make: impl FnOnce(u16, u32) -> io::Result<Inbox>,
    ) -> io::Result<Arc<Inbox>> {
        let mut inboxes = self.inboxes();
        let is_free = |port: &u16| !inboxes.contains_key(port);
        let number = match wanted {
            0 => self.free_ports().find(is_free),
            wanted => Some(wanted).filter(is_free),
        };
        let number = number.ok_or(io::ErrorKind::AddrInUse)?;
        let count = u32::try_from(inboxes.len() + 1).expect("below 65 536");
        let inbox = Arc::new(make(number, count)?);
        inboxes.insert(number, inbox.clone());
        Ok(inbox)
    }

    /// Frees a port.
    pub(crate) fn leave(&self, number: u16) {
        self.inboxes().remove(&number);
    }

    /// The inbox of the endpoint at this port.
    pub(crate) fn find(&self, number: u16) -> Option<Arc<Inbox>> {
        self.inboxes().get(&number).cloned()
    }

    /// The number of endpoints.
    pub(crate) fn count(&self) -> usize {
        self.inboxes().len()
    }

    /// The ports to choose from. Each call begins one port further than the call before.
    fn free_ports(&self) -> impl Iterator<Item = u16> {
        let count = u32::from(u16::MAX - FIRST_PORT) + 1;
        let first = self.next.fetch_add(1, Ordering::Relaxed);
        (0..count).map(move |at| {
            let offset = first.wrapping_add(at) % count;
            FIRST_PORT + u16::try_from(offset).expect("below 16 384")
        })
    }

    fn inboxes(&self) -> MutexGuard<'_, BTreeMap<u16, Arc<Inbox>>> {
        self.inboxes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
