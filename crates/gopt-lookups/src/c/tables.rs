//! The tables as C sees them: a few pointers and numbers, `struct table` in each C file.

use super::ffi::{self, Functions};
use crate::Lookup;
use crate::cuckoo::{self, Cuckoo};
use crate::pointer_chasing::Chain;

/// A table that the C side can read.
///
/// # Safety
/// `in_c` is the `struct table` of the functions that `tight` and `handler` list, and all that they
/// read through it, for any keys that `check_key` lets pass, lies in memory that `self` owns. `tight`
/// takes keys and gives values as this trait's `Lookup` has them, `handler` packets and what a
/// handler makes of them.
pub(super) unsafe trait Table: Lookup {
    /// `struct table`.
    type InC;

    fn in_c(&self) -> Self::InC;
    fn tight() -> &'static Functions;
    fn handler() -> &'static Functions;

    /// Panics if the look-up may not be done. Tables take any key unless they say otherwise.
    fn check_key(&self, _: Self::Key) {}
}

#[repr(C)]
pub(super) struct ChainInC {
    next: *const u32,
    depth: u64,
}

// SAFETY: every cell holds the number of a cell, and so does every key that passes.
unsafe impl Table for Chain {
    type InC = ChainInC;

    fn in_c(&self) -> ChainInC {
        ChainInC {
            next: self.next.as_ptr(),
            depth: self.depth.into(),
        }
    }

    fn tight() -> &'static Functions {
        &ffi::dunlin_gopt_pointer_chasing_tight
    }

    fn handler() -> &'static Functions {
        &ffi::dunlin_gopt_pointer_chasing_handler
    }

    fn check_key(&self, cell: u32) {
        assert!((cell as usize) < self.next.len(), "there is no cell {cell}");
    }
}

#[repr(C)]
pub(super) struct CuckooInC {
    buckets: *const cuckoo::Bucket,
    mask: u64,
}

// SAFETY: there is a bucket for each number that the mask lets pass.
unsafe impl Table for Cuckoo {
    type InC = CuckooInC;

    fn in_c(&self) -> CuckooInC {
        CuckooInC {
            buckets: self.buckets.as_ptr(),
            mask: self.mask as u64,
        }
    }

    fn tight() -> &'static Functions {
        &ffi::dunlin_gopt_cuckoo_tight
    }

    fn handler() -> &'static Functions {
        &ffi::dunlin_gopt_cuckoo_handler
    }
}
