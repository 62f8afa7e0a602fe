//! The tables as C reads them: a few pointers and numbers, `struct table` in each C file.

use super::ffi::{self, Functions};
use crate::Lookup;
use crate::btree::{self, BTree};
use crate::cuckoo::{self, Cuckoo};
use crate::ipv4::Ipv4;
use crate::ipv6::Ipv6;
use crate::mica::{self, Mica};
use crate::pointer_chasing::{Cell, Chain};
use crate::trie::{Trie, Word};

/// A table that the C side can read.
///
/// # Safety
/// `in_c` is the `struct table` of the functions in the lists `tight` and `handler`. Whatever these
/// functions read through it, for keys that `check_key` lets pass, lies in memory that `self` owns.
/// The functions in `tight` take keys and write values, with the types of this table's `Lookup`.
/// Those in `handler` take packets and write the results of a handler.
pub(super) unsafe trait Table: Lookup {
    /// `struct table`.
    type InC;

    fn in_c(&self) -> Self::InC;
    fn tight() -> &'static Functions;
    fn handler() -> &'static Functions;

    /// Panics if the look-up may not run with this key. By default, tables take any key.
    fn check_key(&self, _: Self::Key) {}
}

#[repr(C)]
pub(super) struct ChainInC {
    pub(super) next: *const Cell,
    pub(super) depth: u64,
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
        &ffi::gopt_pointer_chasing_tight
    }

    fn handler() -> &'static Functions {
        &ffi::gopt_pointer_chasing_handler
    }

    fn check_key(&self, cell: u32) {
        assert!((cell as usize) < self.next.len(), "there is no cell {cell}");
    }
}

#[repr(C)]
pub(super) struct CuckooInC {
    pub(super) buckets: *const cuckoo::Bucket,
    pub(super) mask: u64,
}

// SAFETY: there is a bucket for each number that the mask lets pass.
unsafe impl Table for Cuckoo {
    type InC = CuckooInC;

    fn in_c(&self) -> CuckooInC {
        CuckooInC {
            buckets: self.buckets.as_ptr(),
            mask: self.buckets.len() as u64 - 1,
        }
    }

    fn tight() -> &'static Functions {
        &ffi::gopt_cuckoo_tight
    }

    fn handler() -> &'static Functions {
        &ffi::gopt_cuckoo_handler
    }
}

#[repr(C)]
pub(super) struct TrieInC {
    pub(super) first: *const Word,
    pub(super) groups: *const Word,
}

impl TrieInC {
    fn of(trie: &Trie) -> Self {
        Self {
            first: trie.first.as_ptr(),
            groups: trie.groups.as_ptr(),
        }
    }
}

// SAFETY: the first level has a word for each value of 24 bits. A word leads deeper only to a group
// that exists, and none leads deeper below the 32nd bit.
unsafe impl Table for Ipv4 {
    type InC = TrieInC;

    fn in_c(&self) -> TrieInC {
        TrieInC::of(&self.trie)
    }

    fn tight() -> &'static Functions {
        &ffi::gopt_ipv4_tight
    }

    fn handler() -> &'static Functions {
        &ffi::gopt_ipv4_handler
    }
}

// SAFETY: as for IPv4; no word leads deeper below the 128th bit, so shifts stay in range.
unsafe impl Table for Ipv6 {
    type InC = TrieInC;

    fn in_c(&self) -> TrieInC {
        TrieInC::of(&self.trie)
    }

    fn tight() -> &'static Functions {
        &ffi::gopt_ipv6_tight
    }

    fn handler() -> &'static Functions {
        &ffi::gopt_ipv6_handler
    }
}

#[repr(C)]
pub(super) struct MicaInC {
    pub(super) buckets: *const mica::Bucket,
    pub(super) bucket_mask: u64,
    pub(super) entries: *const mica::LogEntry,
    pub(super) entry_mask: u64,
    pub(super) head: u64,
}

// SAFETY: there is a bucket and an entry for each number that the masks let pass.
unsafe impl Table for Mica {
    type InC = MicaInC;

    fn in_c(&self) -> MicaInC {
        MicaInC {
            buckets: self.buckets.as_ptr(),
            bucket_mask: self.buckets.len() as u64 - 1,
            entries: self.entries.as_ptr(),
            entry_mask: self.entries.len() as u64 - 1,
            head: self.head,
        }
    }

    fn tight() -> &'static Functions {
        &ffi::gopt_mica_tight
    }

    fn handler() -> &'static Functions {
        &ffi::gopt_mica_handler
    }
}

/// The most levels above the leaves: each level has a seventeenth of the nodes of the next one, and
/// `17^16` is more than `2^64`.
const MAX_INNER: usize = 16;

#[repr(C)]
pub(super) struct BTreeInC {
    pub(super) inner: [*const btree::Node; MAX_INNER],
    pub(super) inner_levels: u64,
    pub(super) leaves: *const btree::Node,
    pub(super) values: *const u64,
}

// SAFETY: a node has a child for each of its real keys, and one more; a leaf has sixteen values.
unsafe impl Table for BTree {
    type InC = BTreeInC;

    fn in_c(&self) -> BTreeInC {
        let mut inner = [std::ptr::null(); MAX_INNER];
        assert!(
            self.inner.len() <= MAX_INNER,
            "memory has fewer bytes than 17^16"
        );
        for (place, level) in inner.iter_mut().zip(&self.inner) {
            *place = level.as_ptr();
        }
        BTreeInC {
            inner,
            inner_levels: self.inner.len() as u64,
            leaves: self.leaves.as_ptr(),
            values: self.values.as_ptr(),
        }
    }

    fn tight() -> &'static Functions {
        &ffi::gopt_btree_tight
    }

    fn handler() -> &'static Functions {
        &ffi::gopt_btree_handler
    }
}
