//! IPv4 routing with DIR-24-8 (G-Opt §4): one access for prefixes of up to 24 bits, two for
//! longer ones.

use std::io;

use gopt::MAX_WIDTH;

use crate::forms::Lookup;
use crate::touched::Touched;
use crate::trie::{FIRST_BITS, Group, Route, Step, Trie, Word, bits_from, step};
use crate::work::Work;

/// A routing table. The key is an address in host byte order, the value the next hop.
#[derive(Debug)]
pub struct Ipv4 {
    pub(crate) trie: Trie,
}

impl Ipv4 {
    /// Makes the table of these routes. Of two routes for the same prefix, the later one counts.
    ///
    /// # Errors
    /// `InvalidInput` if a prefix is longer than 32 bits or a hop is more than
    /// [`MAX_HOP`](crate::trie::MAX_HOP), otherwise the error of `mmap`.
    pub fn new(routes: impl IntoIterator<Item = Route<u32>>) -> io::Result<Self> {
        let widen = |Route { address, len, hop }| Route {
            address: wide(address),
            len,
            hop,
        };
        let trie = Trie::new(routes.into_iter().map(widen).collect(), 32)?;
        Ok(Self { trie })
    }

    #[inline(always)]
    fn second(&self, group: Group, address: u32) -> &Word {
        self.trie
            .group_word(group, bits_from(wide(address), FIRST_BITS))
    }
}

impl Lookup for Ipv4 {
    type Key = u32;
    type Value = Option<u32>;

    #[inline(always)]
    fn find(&self, address: u32) -> Option<u32> {
        match step(*self.trie.first_word(wide(address))) {
            Step::Found(hop) => hop,
            Step::Deeper(group) => last(*self.second(group, address)),
        }
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would copy its arguments"
    )]
    fn find_marked<W: Work<u32, Option<u32>>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out> {
        async move {
            let address = work.key(item);
            let hop = match step(*gopt::load(self.trie.first_word(wide(address))).await) {
                Step::Found(hop) => hop,
                Step::Deeper(group) => last(*gopt::load(self.second(group, address)).await),
            };
            work.out(item, hop)
        }
    }

    #[inline(always)]
    fn find_group<W: Work<u32, Option<u32>>>(
        &self,
        work: &W,
        items: &[W::Item],
        out: &mut [W::Out],
    ) {
        let mut addresses = [0; MAX_WIDTH];
        let mut deeper = [(0_usize, self.trie.first_word(0)); MAX_WIDTH];
        for (address, item) in addresses.iter_mut().zip(items) {
            *address = work.key(item);
            gopt::prefetch_now(self.trie.first_word(wide(*address)), gopt::T0);
        }
        let mut count = 0;
        for (at, (item, out)) in items.iter().zip(&mut *out).enumerate() {
            match step(*self.trie.first_word(wide(addresses[at]))) {
                Step::Found(hop) => *out = work.out(item, hop),
                Step::Deeper(group) => {
                    let word = self.second(group, addresses[at]);
                    gopt::prefetch_now(word, gopt::T0);
                    deeper[count] = (at, word);
                    count += 1;
                }
            }
        }
        for &(at, word) in &deeper[..count] {
            out[at] = work.out(&items[at], last(*word));
        }
    }

    fn touch(&self, address: u32, touched: &mut Touched) {
        self.trie.touch(wide(address), touched);
    }
}

/// The hop in a word of the last level, which cannot lead deeper.
#[inline(always)]
const fn last(word: Word) -> Option<u32> {
    match step(word) {
        Step::Found(hop) => hop,
        Step::Deeper(_) => None,
    }
}

#[inline(always)]
const fn wide(address: u32) -> u128 {
    (address as u128) << 96
}
