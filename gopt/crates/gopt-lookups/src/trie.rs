//! Longest-prefix match in a multi-bit trie of 32-bit words: 24 bits of the address at the first
//! level, 8 at each further one. The core of `ipv4` (two levels: DIR-24-8, Gupta et al., INFOCOM
//! 1998) and of `ipv6` (up to 14 levels).
//!
//! Invariants: a word is empty, or a next hop, or the number of a group of 256 words from which the
//! next eight bits select one. Only one word leads to each group, and every group number exists.
//! Only this file makes words and groups, so look-ups need no bounds checks. Those would cost a
//! tenth of a plain look-up, because they fill the processor's window.

use std::io;

use zerocopy::FromZeros;

use crate::huge::Huge;
use crate::touched::Touched;

/// Bits that select in the first level.
pub(crate) const FIRST_BITS: u32 = 24;

/// Words of a group: one for each value of eight bits.
const GROUP: usize = 256;

/// The largest next hop: the other two bits of a word give its kind.
pub const MAX_HOP: u32 = (1 << 30) - 1;

/// Set in a word that is not empty.
const SET: u32 = 1 << 31;

/// Set in a word that contains the number of a group.
const DEEPER: u32 = 1 << 30;

/// One entry of a routing table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route<A> {
    /// The address; bits after the prefix do not matter.
    pub address: A,
    /// The number of its bits that form the prefix.
    pub len: u8,
    /// Where packets go: at most [`MAX_HOP`].
    pub hop: u32,
}

/// Levels of words. Addresses are left-aligned in 128 bits.
#[derive(Debug)]
pub(crate) struct Trie {
    pub(crate) first: Huge<Word>,
    pub(crate) groups: Huge<Word>,
}

/// One word of a trie, to decode with [`step`].
#[derive(Clone, Copy, Debug, FromZeros)]
#[repr(transparent)]
pub(crate) struct Word(u32);

/// The number of a group, taken from a word of the same trie.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group(u32);

/// The content of one word.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    /// The search is over.
    Found(Option<u32>),
    /// The next eight bits select in this group.
    Deeper(Group),
}

impl Trie {
    /// Makes a trie of these routes. Of two routes with the same prefix, the later one counts.
    pub(crate) fn new(mut routes: Vec<Route<u128>>, bits: u8) -> io::Result<Self> {
        if routes
            .iter()
            .any(|route| route.hop > MAX_HOP || route.len > bits)
        {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Longer prefixes are written later, over the shorter ones that contain them. The sort is
        // stable, so the later of two equal prefixes wins.
        routes.sort_by_key(|route| route.len);
        let groups = count_groups(&routes);
        if groups > MAX_HOP as usize {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut trie = Self {
            first: Huge::zeroed(1 << FIRST_BITS)?,
            groups: Huge::zeroed(groups * GROUP)?,
        };
        let mut used = 0;
        for route in routes {
            trie.insert(route, &mut used);
        }
        Ok(trie)
    }

    /// Writes a route. All routes that were written before are at most as long.
    fn insert(&mut self, route: Route<u128>, used: &mut u32) {
        let len = u32::from(route.len);
        let mut depth = FIRST_BITS;
        let mut place = first(route.address);
        let mut group = None;
        while len > depth {
            let word = match group {
                None => &mut self.first[place].0,
                Some(group) => &mut self.groups[in_group(group, place)].0,
            };
            if *word & DEEPER == 0 {
                let covering = *word;
                *word = SET | DEEPER | *used;
                let from = in_group(*used, 0);
                self.groups[from..from + GROUP].fill(Word(covering));
                group = Some(*used);
                *used += 1;
            } else {
                group = Some(*word & MAX_HOP);
            }
            place = byte(bits_from(route.address, depth));
            depth += 8;
        }
        // The route covers all words that share its bits, whatever their later bits are.
        let covered = 1_usize << (depth - len);
        let start = place & !(covered - 1);
        let words = match group {
            None => &mut self.first[start..start + covered],
            Some(group) => {
                let from = in_group(group, start);
                &mut self.groups[from..from + covered]
            }
        };
        // None of these words leads deeper yet: only longer routes make such words, and they are
        // written later.
        words.fill(Word(SET | route.hop));
    }

    /// The word of the first level for an address.
    #[inline(always)]
    pub(crate) fn first_word(&self, address: u128) -> &Word {
        // SAFETY: the first level has a word for each value of 24 bits.
        unsafe { self.first.get_unchecked(first(address)) }
    }

    /// The word of a group that the first eight of these address bits select.
    #[inline(always)]
    pub(crate) fn group_word(&self, group: Group, bits: u64) -> &Word {
        // SAFETY: a group's number comes from a word, every number in a word exists, and a group
        // has a word for each value of eight bits.
        unsafe { self.groups.get_unchecked(in_group(group.0, byte(bits))) }
    }

    /// Reports the words that a search for an address reads.
    pub(crate) fn touch(&self, address: u128, touched: &mut Touched) {
        touched.read(&self.first, first(address));
        let mut word = *self.first_word(address);
        let mut rest = address << FIRST_BITS;
        while let Step::Deeper(group) = step(word) {
            touched.read(&self.groups, in_group(group.0, byte(high(rest))));
            word = *self.group_word(group, high(rest));
            rest <<= 8;
        }
    }
}

/// At least eight bits of an address, from `depth` on, which is a multiple of eight. So the next
/// eight bits lie in one half of the address, and shifts of 64 bits are enough. Shifts of 128 bits
/// would cost more than the rest of a step.
#[inline(always)]
pub(crate) fn bits_from(address: u128, depth: u32) -> u64 {
    let half = if depth < 64 {
        high(address)
    } else {
        high(address << 64)
    };
    half << (depth % 64)
}

/// The first 64 bits of an address.
#[inline(always)]
pub(crate) fn high(address: u128) -> u64 {
    u64::try_from(address >> 64).expect("64 bits")
}

/// The content of a word.
#[inline(always)]
pub(crate) const fn step(Word(word): Word) -> Step {
    if word & DEEPER != 0 {
        Step::Deeper(Group(word & MAX_HOP))
    } else if word & SET != 0 {
        Step::Found(Some(word & MAX_HOP))
    } else {
        Step::Found(None)
    }
}

/// The most groups that the routes, sorted or not, need. A prefix needs one group for each level
/// below the first into which it reaches; equal prefixes count once.
fn count_groups(routes: &[Route<u128>]) -> usize {
    let mut nodes = Vec::new();
    for route in routes {
        let mut depth = FIRST_BITS;
        while u32::from(route.len) > depth {
            nodes.push((depth, route.address >> (128 - depth)));
            depth += 8;
        }
    }
    nodes.sort_unstable();
    nodes.dedup();
    nodes.len()
}

#[inline(always)]
fn first(address: u128) -> usize {
    usize::try_from(address >> (128 - FIRST_BITS)).expect("24 bits")
}

/// The first eight bits.
#[inline(always)]
fn byte(bits: u64) -> usize {
    usize::try_from(bits >> 56).expect("eight bits")
}

#[inline(always)]
const fn in_group(group: u32, place: usize) -> usize {
    group as usize * GROUP + place
}
