//! The entries of rings, and their layout in memory (`struct xdp_desc`, and addresses of frames).
//! Used by `ring`.

/// An entry of a ring, as one or two words.
pub trait RingEntry: Copy {
    /// Words of an entry.
    const WORDS: usize;
    /// The entry as words; a short one leaves the second 0.
    fn words(self) -> [u64; 2];
    /// The entry of these words.
    fn of(words: [u64; 2]) -> Self;
}

/// A piece of a frame in the receive or the transmit ring (`struct xdp_desc`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Desc {
    /// Where it begins, in bytes from the start of the region.
    pub addr: u64,
    /// Bytes.
    pub len: u32,
    /// [`Desc::CONTINUES`], or 0.
    pub options: u32,
}

impl Desc {
    /// Another piece of the same frame follows (`XDP_PKT_CONTD`).
    pub const CONTINUES: u32 = 1;

    /// Whether another piece follows.
    pub const fn continues(&self) -> bool {
        self.options & Self::CONTINUES != 0
    }

    /// The bytes of a piece without options; for one with options, more than any frame has.
    #[inline]
    pub(crate) fn plain_len(&self) -> u64 {
        u64::from(self.options) << 32 | u64::from(self.len)
    }
}

impl RingEntry for Desc {
    const WORDS: usize = 2;

    #[inline]
    fn words(self) -> [u64; 2] {
        let (low, high) = if cfg!(target_endian = "little") {
            (self.len, self.options)
        } else {
            (self.options, self.len)
        };
        [self.addr, u64::from(high) << 32 | u64::from(low)]
    }

    #[inline]
    fn of([addr, rest]: [u64; 2]) -> Self {
        let bytes = rest.to_ne_bytes();
        let half = |at: usize| [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        Self {
            addr,
            len: u32::from_ne_bytes(half(0)),
            options: u32::from_ne_bytes(half(4)),
        }
    }
}

/// The address of a frame in the fill or the completion ring.
impl RingEntry for u64 {
    const WORDS: usize = 1;

    #[inline]
    fn words(self) -> [u64; 2] {
        [self, 0]
    }

    #[inline]
    fn of(words: [u64; 2]) -> Self {
        words[0]
    }
}
