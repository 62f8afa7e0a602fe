//! IPv6 routing in a multi-bit trie (G-Opt §3.3): 24 bits, then 8 at a time, so a prefix of 48
//! to 64 bits takes four to six dependent accesses.

use std::io;

use gopt::MAX_WIDTH;

use crate::forms::Lookup;
use crate::touched::Touched;
use crate::trie::{FIRST_BITS, Route, Step, Trie, bits_from, high, step};
use crate::work::Work;

/// A routing table. The key is an address in host byte order, the value the next hop.
#[derive(Debug)]
pub struct Ipv6 {
    pub(crate) trie: Trie,
}

impl Ipv6 {
    /// Makes the table of these routes. Of two routes for the same prefix, the later one counts.
    ///
    /// # Errors
    /// `InvalidInput` if a prefix is longer than 128 bits or a hop is more than
    /// [`MAX_HOP`](crate::trie::MAX_HOP), otherwise the error of `mmap`.
    pub fn new(routes: impl IntoIterator<Item = Route<u128>>) -> io::Result<Self> {
        let trie = Trie::new(routes.into_iter().collect(), 128)?;
        Ok(Self { trie })
    }
}

impl Lookup for Ipv6 {
    type Key = u128;
    type Value = Option<u32>;

    #[inline(always)]
    fn find(&self, address: u128) -> Option<u32> {
        let mut word = *self.trie.first_word(address);
        // Shifting two words is faster than counting the used bits while all values are in
        // registers; with values in memory, counting is faster.
        let mut rest = address << FIRST_BITS;
        loop {
            match step(word) {
                Step::Found(hop) => return hop,
                Step::Deeper(group) => word = *self.trie.group_word(group, high(rest)),
            }
            rest <<= 8;
        }
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would copy its arguments"
    )]
    fn find_marked<W: Work<u128, Option<u32>>>(
        &self,
        work: &W,
        item: &W::Item,
    ) -> impl Future<Output = W::Out> {
        async move {
            let address = work.key(item);
            let mut word = self.trie.first_word(address);
            let mut depth = FIRST_BITS;
            let hop = loop {
                match step(*gopt::load(word).await) {
                    Step::Found(hop) => break hop,
                    Step::Deeper(group) => {
                        word = self.trie.group_word(group, bits_from(address, depth));
                    }
                }
                depth += 8;
            };
            work.out(item, hop)
        }
    }

    #[inline(always)]
    fn find_group<W: Work<u128, Option<u32>>>(
        &self,
        work: &W,
        items: &[W::Item],
        out: &mut [W::Out],
    ) {
        let mut addresses = [0; MAX_WIDTH];
        let mut words = [self.trie.first_word(0); MAX_WIDTH];
        // Numbers of items whose search continues, packed, so that a level costs nothing for the
        // others.
        let mut open = [0_usize; MAX_WIDTH];
        for (at, item) in items.iter().enumerate() {
            addresses[at] = work.key(item);
            words[at] = self.trie.first_word(addresses[at]);
            gopt::prefetch_now(words[at], gopt::T0);
            open[at] = at;
        }
        let mut count = items.len();
        let mut depth = FIRST_BITS;
        while count > 0 {
            let mut deeper = 0;
            for slot in 0..count {
                let at = open[slot];
                match step(*words[at]) {
                    Step::Found(hop) => out[at] = work.out(&items[at], hop),
                    Step::Deeper(group) => {
                        let bits = bits_from(addresses[at], depth);
                        words[at] = self.trie.group_word(group, bits);
                        gopt::prefetch_now(words[at], gopt::T0);
                        open[deeper] = at;
                        deeper += 1;
                    }
                }
            }
            count = deeper;
            depth += 8;
        }
    }

    fn touch(&self, address: u128, touched: &mut Touched) {
        self.trie.touch(address, touched);
    }
}
