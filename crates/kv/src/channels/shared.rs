//! The state that all clones of a client share: its options, and the servers that are listed now.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::list::{List, Lists};
use crate::fleet::FleetOptions;

#[derive(Debug)]
pub(super) struct Shared {
    options: FleetOptions,
    lists: Lists,
}

impl Shared {
    pub(super) const fn new(options: FleetOptions, lists: Lists) -> Self {
        Self { options, lists }
    }

    pub(super) const fn options(&self) -> &FleetOptions {
        &self.options
    }

    /// The servers now.
    pub(super) fn list(&self) -> Arc<List> {
        self.lists.current()
    }

    /// The time at which an operation that begins now ends at the latest.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from(self.options.client.deadline)
    }
}
