//! The state of requests that the endpoint compares with its other parts when it checks its laws
//! (`law.rs`).

use super::{InboundRequest, Marks, RequestState, Requests, Template};
use crate::handle::AssemblyIdx;
use crate::session::slots::SlotRange;

impl Requests {
    /// The sum of the sizes of all partly arrived requests in these slots. `size_at` returns the
    /// size of the whole request that is assembled at a place.
    pub(crate) fn receiving(&self, slots: SlotRange, size_at: impl Fn(AssemblyIdx) -> u64) -> u64 {
        let requests = slots.iter().filter_map(|at| self.request_at(at));
        let parts = requests.filter(|idx| self.at(*idx).state == RequestState::Receiving);
        parts.map(|idx| size_at(self.at(idx).place)).sum()
    }

    /// Whether the prepared answers of all requests in these slots are those that their session's
    /// terms prescribe.
    pub(crate) fn are_prepared(&self, slots: SlotRange, template: &Template) -> bool {
        let mut requests = slots.iter().filter_map(|at| self.request_at(at));
        requests.all(|idx| self.at(idx).answer == *template)
    }

    /// Whether each request in the table is in a slot, or its session is gone.
    pub(crate) fn is_count_right(&self) -> bool {
        let is_orphan = |request: &&InboundRequest| request.marks.has(Marks::ORPHAN);
        let orphans = self.table.iter().filter(is_orphan).count();
        self.count_in_slots() + orphans == self.table.live()
    }

    /// A planted bug: takes an entry of the table that belongs to no slot.
    #[cfg(feature = "mutants")]
    pub(crate) fn leak(&mut self) {
        self.table.take();
    }

    /// A planted bug: prepares the answers of a request for shorter packets.
    #[cfg(feature = "mutants")]
    pub(crate) fn spoil_template(&mut self, idx: super::RequestIdx) {
        let single = &mut self.at_mut(idx).answer.single;
        *single = single.saturating_sub(1);
    }
}
