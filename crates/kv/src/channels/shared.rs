//! The state that all clones of a client share: its options, and the present list of servers.

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

    /// The present servers.
    pub(super) fn list(&self) -> Arc<List> {
        self.lists.current()
    }

    /// The deadline of an operation that begins now.
    pub(super) fn deadline(&self) -> Instant {
        Instant::now() + Duration::from(self.options.client.deadline)
    }
}
