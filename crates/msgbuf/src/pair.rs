//! Two words that are read one by one and stored together.
//!
//! A processor forwards a value from a store to a load only if one store covers every byte of the
//! load. Otherwise, the load waits until the store has left the store buffer, which takes hundreds
//! of nanoseconds if earlier stores wait for a line of another core. Therefore, words that were
//! stored a moment ago are read one by one. When the lines go to another core, the store buffer is
//! the first resource to fill up, so one store writes two words. Called by `copy`, and by
//! transports.

#[cfg(target_arch = "x86_64")]
type Both = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Both = [u64; 2];

/// Bytes of a pair.
pub const PAIR: usize = size_of::<Pair>();

/// Two words in one register, which one store writes.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Pair(Both);

impl Pair {
    /// Loads the two words at `from[AT..]` one by one. Plain Rust would not do: the compiler would
    /// merge the two loads.
    ///
    /// ```
    /// # use dunlin_msgbuf::Pair;
    /// let mut to = [0; 16];
    /// Pair::load::<1, _>(&[1; 17]).store(&mut to);
    /// assert_eq!(to, [1; 16]);
    /// ```
    #[inline(always)]
    pub fn load<const AT: usize, const N: usize>(from: &[u8; N]) -> Self {
        const { assert!(AT + PAIR <= N, "the words lie inside the bytes") };
        // SAFETY: the words at this offset are bytes of `from`.
        Self(unsafe { load::<AT>(from.as_ptr()) })
    }

    /// Loads the two words at `from[AT..]` with one load: for words that one store has written. The
    /// compiler does not merge this load with the load of the next pair, which would be wider than
    /// the stores.
    ///
    /// ```
    /// # use dunlin_msgbuf::Pair;
    /// let mut to = [0; 16];
    /// Pair::load_stored::<1, _>(&[1; 17]).store(&mut to);
    /// assert_eq!(to, [1; 16]);
    /// ```
    #[inline(always)]
    pub fn load_stored<const AT: usize, const N: usize>(from: &[u8; N]) -> Self {
        const { assert!(AT + PAIR <= N, "the words lie inside the bytes") };
        // SAFETY: the words at this offset are bytes of `from`.
        Self(unsafe { load_once::<AT>(from.as_ptr()) })
    }

    /// A pair of the two words; `lower` comes first in memory.
    #[inline(always)]
    pub(crate) fn of(lower: u64, upper: u64) -> Self {
        Self(both(lower, upper))
    }

    /// Stores both words with one store.
    #[inline(always)]
    pub fn store(self, to: &mut [u8; PAIR]) {
        // SAFETY: a pair has as many bytes as `to`, all of them initialised; the store needs no
        // alignment.
        unsafe { to.as_mut_ptr().cast::<Self>().write_unaligned(self) }
    }
}

/// Loads the lower and the upper word with the two given instructions.
#[cfg(all(target_arch = "x86_64", not(miri)))]
macro_rules! load_by {
    ($lower:literal, $upper:literal, $from:ident) => {{
        let pair;
        // SAFETY: the caller of `load` promises that both words are readable, and the code is
        // compiled only for processors that have the instructions.
        unsafe {
            std::arch::asm!(
                concat!($lower, ", qword ptr [{from} + {at}]"),
                concat!($upper, ", qword ptr [{from} + {at} + 8]"),
                from = in(reg) $from,
                at = const AT,
                pair = out(xmm_reg) pair,
                options(pure, readonly, nostack, preserves_flags),
            );
        }
        pair
    }};
}

/// # Safety
/// `from` is good for reading two words at the offset, at any alignment.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load<const AT: usize>(from: *const u8) -> Both {
    #[cfg(target_feature = "avx")]
    return load_by!("vmovq {pair}", "vmovhps {pair}, {pair}", from);
    #[cfg(not(target_feature = "avx"))]
    return load_by!("movq {pair}", "movhps {pair}", from);
}

/// Loads both words with one instruction.
///
/// # Safety
/// As above.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
unsafe fn load_once<const AT: usize>(from: *const u8) -> Both {
    let pair;
    // SAFETY: the caller promises both words, and every x86-64 has the instruction.
    unsafe {
        #[cfg(target_feature = "avx")]
        std::arch::asm!(
            "vmovups {pair}, xmmword ptr [{from} + {at}]",
            from = in(reg) from,
            at = const AT,
            pair = out(xmm_reg) pair,
            options(pure, readonly, nostack, preserves_flags),
        );
        #[cfg(not(target_feature = "avx"))]
        std::arch::asm!(
            "movups {pair}, xmmword ptr [{from} + {at}]",
            from = in(reg) from,
            at = const AT,
            pair = out(xmm_reg) pair,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    pair
}

/// Loads both words, with instructions that the compiler chooses.
///
/// # Safety
/// As above.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
unsafe fn load_once<const AT: usize>(from: *const u8) -> Both {
    // SAFETY: as the caller promises.
    unsafe { load::<AT>(from) }
}

/// Loads both words, with instructions that the compiler chooses.
///
/// # Safety
/// As above.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
unsafe fn load<const AT: usize>(from: *const u8) -> Both {
    // SAFETY: the caller promises both words.
    unsafe { both(word_at(from.add(AT)), word_at(from.add(AT + 8))) }
}

/// Reads a word with a load that the compiler does not widen.
#[inline(always)]
pub(crate) fn word(from: &[u8; 8]) -> u64 {
    // SAFETY: all bytes of `from` are initialised.
    unsafe { word_at(from.as_ptr()) }
}

/// # Safety
/// `from` is good for reading a word, at any alignment.
#[inline(always)]
unsafe fn word_at(from: *const u8) -> u64 {
    /// A word at any address.
    #[derive(Clone, Copy)]
    #[repr(C, packed)]
    struct Unaligned(u64);

    // SAFETY: as the caller promises.
    unsafe { from.cast::<Unaligned>().read_volatile() }.0
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn both(low: u64, high: u64) -> Both {
    // SAFETY: every x86-64 has the instruction.
    unsafe { std::arch::x86_64::_mm_set_epi64x(high.cast_signed(), low.cast_signed()) }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn both(low: u64, high: u64) -> Both {
    [low, high]
}

#[cfg(test)]
mod tests;
