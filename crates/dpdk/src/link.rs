//! The link of a device, at which the keeper looks from time to time, to count how often it went
//! down. Owned by `port`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Time between two looks.
const EVERY_MS: u64 = 250;

/// The link, as the keeper has last seen it.
#[derive(Debug, Default)]
pub(crate) struct Link {
    looked_ms: AtomicU64,
    is_up: AtomicBool,
}

impl Link {
    /// If it is time to look, calls `is_up`. True if the link has gone down since the last look.
    /// Only the keeper calls this.
    pub(crate) fn on_time(&self, now_ms: u64, is_up: impl FnOnce() -> bool) -> bool {
        if now_ms - self.looked_ms.load(Ordering::Relaxed) < EVERY_MS {
            return false;
        }
        self.looked_ms.store(now_ms, Ordering::Relaxed);
        let is_up = is_up();
        self.is_up.swap(is_up, Ordering::Relaxed) && !is_up
    }
}

#[cfg(test)]
mod tests;
