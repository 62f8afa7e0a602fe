//! Events of address lists and of links. They also let waiting calls use a server that has become
//! ready.

use dunlin_core::{CloseReason, Nanos};

use super::Machine;
use crate::handle::LinkId;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant;
use crate::types::Opened;

impl Machine {
    /// Takes a new list of addresses. Names that resolve to no address are missing in it, and an
    /// address that occurs twice counts once. Calls at an address that is no longer listed go on,
    /// but the address gets no new ones.
    pub fn on_addresses<'a>(&mut self, names: impl IntoIterator<Item = &'a str>, now: Nanos) {
        self.lookups.on_end(now);
        if self.is_closed {
            return;
        }
        let names = names.into_iter();
        self.with_addresses(now, |addresses, around| addresses.on_list(names, around));
        self.wake(now);
    }

    /// A look-up has failed: the addresses stay as they are. Until a look-up succeeds, the next one
    /// comes after 0.1 to 1 s.
    pub fn on_lookup_failed(&mut self, now: Nanos) {
        self.lookups.on_failure(now);
    }

    /// A link has opened.
    pub fn on_opened(&mut self, link: LinkId, opened: &Opened, now: Nanos) {
        self.with_addresses(now, |all, around| all.on_opened(link, opened, around));
        self.wake(now);
    }

    /// A link could not be opened, or was lost. The driver reports the ends of its attempts as
    /// well, before or after this.
    pub fn on_closed(&mut self, link: LinkId, reason: CloseReason, now: Nanos) {
        let was_open = self.with_addresses(now, |all, around| all.on_closed(link, reason, around));
        if was_open {
            self.lookups.on_loss(now);
        }
    }

    /// Takes a report that the server at the other end of an open link drains, or does not, and
    /// that `endpoints` of its endpoints serve.
    pub fn on_serving(&mut self, link: LinkId, draining: bool, endpoints: u32, now: Nanos) {
        self.with_addresses(now, |all, around| {
            all.on_serving(link, draining, endpoints, around);
        });
        self.wake(now);
    }

    /// Tries the waiting calls in their order, because a server may be ready for them.
    pub(super) fn wake(&mut self, now: Nanos) {
        let mut next = self.calls.first_waiting();
        while let Some(call) = next {
            if self.addresses.ready().is_empty() {
                return;
            }
            next = self.calls.waiting_after(call);
            self.try_waiting(call, now);
            #[cfg(feature = "mutants")]
            if self.config.shows(Mutant::LostWakeup) {
                return;
            }
        }
    }
}
