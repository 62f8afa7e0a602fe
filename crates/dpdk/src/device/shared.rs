//! Regions of msgbufs that a device may read where they lie.
//!
//! Invariants: a region that lives is made readable once, and stays so, because the device may have
//! packets with its bytes at any time. A region that has gone is taken from the device before
//! another one is made readable, because that may have the same addresses, and because DPDK keeps
//! some 120 regions at most. If the device has not given all packets of an endpoint back, no region
//! is taken from it. Owned by `TxQueue`.

use std::ffi::c_void;

use dunlin_msgbuf::{RegionId, regions};

/// A region, and its memory.
#[derive(Debug)]
struct Region {
    id: RegionId,
    memory: Memory,
    /// Whether the device may read it.
    is_open: bool,
}

/// Address and length of memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Memory(pub(super) *mut c_void, pub(super) usize);

// SAFETY: the address is only handed to DPDK.
unsafe impl Send for Memory {}

/// The regions of a device.
#[derive(Debug, Default)]
pub(super) struct Shared {
    regions: Vec<Region>,
    /// Whether the device may read bytes of regions that have gone.
    is_owed: bool,
}

impl Shared {
    /// Whether the device may read a region whose bytes begin at `base`. If the region is new,
    /// `share` makes its memory readable. `share` gets memory, and true to make it readable or
    /// false to take it from the device; it returns whether that succeeds.
    ///
    /// Memory that the program brings is copied, because it comes and goes with each message.
    pub(super) fn may_read(
        &mut self,
        id: RegionId,
        base: *mut c_void,
        mut share: impl FnMut(Memory, bool) -> bool,
    ) -> bool {
        if let Some(region) = self.regions.iter().find(|it| it.id == id) {
            return region.is_open;
        }
        let Some(info) = regions::info(id).filter(|info| info.extent.is_some()) else {
            return false;
        };
        let is_owed = self.is_owed;
        self.regions.retain(|it| {
            let must_stay = regions::is_alive(it.id) || (is_owed && it.is_open);
            must_stay || (it.is_open && !share(it.memory, false))
        });
        let memory = Memory(base, info.len);
        let is_open = share(memory, true);
        self.regions.push(Region {
            id,
            memory,
            is_open,
        });
        is_open
    }

    /// Notes that an endpoint has gone before the device gave all of its packets back.
    pub(super) fn on_owed(&mut self) {
        self.is_owed = true;
    }
}

#[cfg(test)]
mod tests;
