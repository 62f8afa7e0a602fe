//! One packet of a device.
//!
//! Invariant: a packet of the device has exactly one holder: a [`Packet`] value, a batch of this
//! folder, or the device.

use std::ffi::c_void;
use std::ptr::NonNull;

use dunlin_core::transport::RX_BURST;

/// The most packets of a burst.
pub(crate) const BATCH: usize = RX_BURST;

/// A packet, which belongs to its holder. It must go back by [`Pool::free_one`], or to the device.
///
/// [`Pool::free_one`]: super::Pool::free_one
#[derive(Debug)]
pub(crate) struct Packet {
    handle: NonNull<c_void>,
    bytes: NonNull<u8>,
    len: u32,
}

// SAFETY: the packet belongs to its holder alone, in memory of the process.
unsafe impl Send for Packet {}

impl Packet {
    /// The packet with this handle, whose first `len` bytes lie at `bytes`.
    ///
    /// # Safety
    /// The bytes do lie there, and the caller, to which the packet belonged, no longer uses it.
    ///
    /// # Panics
    /// If an address is 0.
    #[inline]
    pub(super) unsafe fn new(handle: *mut c_void, bytes: *mut u8, len: u32) -> Self {
        Self {
            handle: NonNull::new(handle).expect("DPDK names packets by addresses"),
            bytes: NonNull::new(bytes).expect("a packet has memory"),
            len,
        }
    }

    /// Its handle, to which the packet belongs from now on.
    #[inline]
    pub(super) fn into_handle(self) -> *mut c_void {
        self.handle.as_ptr()
    }

    /// Its bytes.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the first `len` bytes are the packet's, and nothing else writes them.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len as usize) }
    }

    /// Its bytes, to write.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.bytes.as_ptr(), self.len as usize) }
    }

    /// The number of its bytes.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    /// Shortens the packet to `len` bytes. Does nothing if it has no more than that.
    #[inline]
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u32::try_from(len).unwrap_or(u32::MAX));
    }
}
