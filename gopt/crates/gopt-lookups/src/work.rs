//! The work of a program for an item, in addition to the look-up: nothing ([`Tight`]), or the work
//! of a packet handler ([`Handler`]), which fills the processor's window between one look-up and
//! the next (G-Opt §4.4; design §16).

/// Work around the look-up of one item.
pub trait Work<K, V> {
    /// An item of a batch.
    type Item;
    /// The result for an item.
    type Out;

    /// The work before the look-up.
    fn key(&self, item: &Self::Item) -> K;

    /// The work after the look-up.
    fn out(&self, item: &Self::Item, value: V) -> Self::Out;
}

/// Look-ups alone.
#[derive(Clone, Copy, Debug)]
pub struct Tight;

impl<K: Copy, V> Work<K, V> for Tight {
    type Item = K;
    type Out = V;

    #[inline(always)]
    fn key(&self, item: &K) -> K {
        *item
    }

    #[inline(always)]
    fn out(&self, _: &K, value: V) -> V {
        value
    }
}

/// A packet in the cache: headers as words, and the key that they contain.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet<K> {
    /// Header and first bytes of the payload.
    pub words: [u64; 8],
    /// The key to look up.
    pub key: K,
}

/// The result of a packet handler for one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Handled<V> {
    /// The value of the look-up.
    pub value: V,
    /// The digest of the checks before and after it.
    pub digest: u64,
}

/// 500 to 700 instructions for each item: checks of the packet before the look-up, and of the value
/// after it. They form four chains of dependent instructions, so a core runs about three
/// instructions a cycle.
#[derive(Clone, Copy, Debug)]
pub struct Handler;

/// Rounds of mixing on each side of the look-up. A round has 8 words, with 3 instructions for each.
const ROUNDS: u64 = 9;

impl<K: Copy, V> Work<K, V> for Handler {
    type Item = Packet<K>;
    type Out = Handled<V>;

    #[inline(always)]
    fn key(&self, packet: &Packet<K>) -> K {
        // The compiler must not move this check after the use of the key: a handler drops bad
        // packets first.
        std::hint::black_box(digest(&packet.words, 1));
        packet.key
    }

    #[inline(always)]
    fn out(&self, packet: &Packet<K>, value: V) -> Handled<V> {
        Handled {
            value,
            digest: digest(&packet.words, 2),
        }
    }
}

/// A digest of `8 * ROUNDS` words, which the compiler cannot shorten.
#[inline(never)]
fn digest(words: &[u64; 8], seed: u64) -> u64 {
    let mut sums = [seed; 4];
    for round in 0..std::hint::black_box(ROUNDS) {
        for (at, word) in words.iter().enumerate() {
            let sum = &mut sums[at % 4];
            *sum = (sum.rotate_left(5) ^ word).wrapping_add(round);
        }
    }
    sums.into_iter().fold(0, u64::wrapping_add)
}
