//! Discarded items and clients, which are freed in slices: freeing a GiB at once takes half a
//! second. Called by `node`.

use super::arrival::Arrival;
use super::clients::Clients;
use super::frozen::Budget;
use super::items::Items;

/// The remains of a discarded state.
#[derive(Clone, Debug)]
pub(crate) struct Ruin {
    items: Items,
    clients: Clients,
}

impl Ruin {
    pub(super) const fn new(items: Items, clients: Clients) -> Self {
        Self { items, clients }
    }

    /// Frees a part, and returns whether anything is left.
    pub(crate) fn shed(&mut self, mut budget: Budget) -> bool {
        self.items.shed(&mut budget) || self.clients.shed(&mut budget)
    }
}

impl From<Arrival> for Ruin {
    /// The parts of a state that is no longer wanted.
    fn from(arrival: Arrival) -> Self {
        let (items, clients) = arrival.into_parts();
        Self { items, clients }
    }
}
