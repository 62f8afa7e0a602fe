//! A static B+-tree: sorted pairs, packed into nodes of sixteen keys; arithmetic finds the children
//! of a node. It stands for an ordered index that is read far more often than written.
//!
//! Invariants: the first level of `inner` has one node, the root; each node of a level has up to 17
//! children in the next one, and `leaves` is the last level; keys ascend through a level;
//! `u64::MAX` fills the rest of a node, and therefore cannot be a key.

use std::io;

use gopt::MAX_WIDTH;
use zerocopy::FromZeros;

use crate::compare::equal_u64_from;
use crate::forms::Lookup;
use crate::huge::Huge;
use crate::touched::Touched;
use crate::work::Work;

/// Keys of a node: two cache lines.
const KEYS: usize = 16;

/// Children of an inner node.
const FAN: usize = KEYS + 1;

/// Fills the rest of nodes, and cannot be a key.
pub const RESERVED: u64 = u64::MAX;

#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(C, align(128))]
pub(crate) struct Node {
    keys: [u64; KEYS],
}

/// A map from integers to integers.
#[derive(Debug)]
pub struct BTree {
    pub(crate) inner: Vec<Huge<Node>>,
    pub(crate) leaves: Huge<Node>,
    pub(crate) values: Huge<u64>,
}

impl BTree {
    /// Makes the tree of these pairs, which must ascend by key.
    ///
    /// # Errors
    /// `InvalidInput` if they do not, or if a key is [`RESERVED`]; otherwise the error of `mmap`.
    pub fn new(pairs: impl ExactSizeIterator<Item = (u64, u64)>) -> io::Result<Self> {
        let len = pairs.len();
        let mut leaves = nodes(len.div_ceil(KEYS).max(1))?;
        let mut values = Huge::zeroed(leaves.len() * KEYS)?;
        let mut last = None;
        for (at, (key, value)) in pairs.take(len).enumerate() {
            if key == RESERVED || last.is_some_and(|last| last >= key) {
                return Err(io::ErrorKind::InvalidInput.into());
            }
            last = Some(key);
            leaves[at / KEYS].keys[at % KEYS] = key;
            values[at] = value;
        }
        // Each level is built from the least keys under the nodes of the level below it.
        let mut inner = Vec::new();
        let mut least: Vec<u64> = leaves.iter().map(|leaf| leaf.keys[0]).collect();
        while least.len() > 1 {
            let mut level = nodes(least.len().div_ceil(FAN))?;
            for (node, children) in level.iter_mut().zip(least.chunks(FAN)) {
                node.keys[..children.len() - 1].copy_from_slice(&children[1..]);
            }
            least = least.chunks(FAN).map(|children| children[0]).collect();
            inner.push(level);
        }
        inner.reverse();
        Ok(Self {
            inner,
            leaves,
            values,
        })
    }

    /// Levels of a look-up, leaves included.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.inner.len() + 1
    }
}

impl Lookup for BTree {
    type Key = u64;
    type Value = Option<u64>;

    #[inline(always)]
    fn find(&self, key: u64) -> Option<u64> {
        let mut at = 0;
        for level in &self.inner {
            at = at * FAN + child(&level[at], key);
        }
        let slot = slot(&self.leaves[at], key)?;
        Some(self.values[at * KEYS + slot])
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would copy its arguments"
    )]
    fn find_marked<W: Work<u64, Option<u64>>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out> {
        async move {
            let key = work.key(item);
            let mut at = 0;
            for level in &self.inner {
                at = at * FAN + child(gopt::load(&level[at]).await, key);
            }
            let value = match slot(gopt::load(&self.leaves[at]).await, key) {
                Some(slot) => Some(*gopt::load(&self.values[at * KEYS + slot]).await),
                None => None,
            };
            work.out(item, value)
        }
    }

    #[inline(always)]
    fn find_group<W: Work<u64, Option<u64>>>(
        &self,
        work: &W,
        items: &[W::Item],
        out: &mut [W::Out],
    ) {
        let mut keys = [0; MAX_WIDTH];
        let mut at = [0; MAX_WIDTH];
        let mut slots = [None; MAX_WIDTH];
        for (key, item) in keys.iter_mut().zip(items) {
            *key = work.key(item);
        }
        let group = items.len();
        for level in &self.inner {
            for at in &at[..group] {
                prefetch(&level[*at]);
            }
            for (at, key) in at[..group].iter_mut().zip(&keys) {
                *at = *at * FAN + child(&level[*at], *key);
            }
        }
        for at in &at[..group] {
            prefetch(&self.leaves[*at]);
        }
        for ((slots, at), key) in slots[..group].iter_mut().zip(&at).zip(&keys) {
            *slots = slot(&self.leaves[*at], *key).map(|slot| at * KEYS + slot);
            if let Some(slot) = *slots {
                gopt::prefetch_now(&raw const self.values[slot], gopt::T0);
            }
        }
        for ((item, out), slot) in items.iter().zip(out).zip(slots) {
            *out = work.out(item, slot.map(|slot| self.values[slot]));
        }
    }

    fn touch(&self, key: u64, touched: &mut Touched) {
        let mut at = 0;
        for level in &self.inner {
            touched.read(level, at);
            at = at * FAN + child(&level[at], key);
        }
        touched.read(&self.leaves, at);
        if let Some(slot) = slot(&self.leaves[at], key) {
            touched.read(&self.values, at * KEYS + slot);
        }
    }
}

fn nodes(len: usize) -> io::Result<Huge<Node>> {
    let mut nodes: Huge<Node> = Huge::zeroed(len)?;
    for node in nodes.iter_mut() {
        node.keys = [RESERVED; KEYS];
    }
    Ok(nodes)
}

/// The child that may hold the key: its index is the number of keys in the node that are at most
/// the key. The code has no branches, so the loop compiles to vectors and nothing is mispredicted.
#[inline(always)]
fn child(node: &Node, key: u64) -> usize {
    // Empty places hold `RESERVED`. With this limit on the key, the count excludes them without a
    // further comparison.
    let key = key.min(RESERVED - 1);
    node.keys
        .iter()
        .map(|&other| usize::from(other <= key))
        .sum()
}

/// The place of the key in a leaf.
#[inline(always)]
fn slot(leaf: &Node, key: u64) -> Option<usize> {
    let equal = equal_u64_from::<0>(&leaf.keys, key);
    (equal != 0 && key != RESERVED).then(|| equal.trailing_zeros() as usize % KEYS)
}

/// Prefetches both lines of a node.
#[inline(always)]
fn prefetch(node: &Node) {
    gopt::prefetch_now(&raw const node.keys[0], gopt::T0);
    gopt::prefetch_now(&raw const node.keys[KEYS / 2], gopt::T0);
}
