//! Two words that are read apart and stored together.
//!
//! A processor hands a value from a store to a load only if that one store covers all that the load
//! asks for; else the load waits until the store has left the store buffer, which takes hundreds of
//! nanoseconds behind stores to a line of another core. So what was stored as words a moment ago is
//! read as words. Stores are what runs out first where lines go to another core, so there are few
//! of them. Called by `copy`, and by transports.

#[cfg(target_arch = "x86_64")]
type Both = std::arch::x86_64::__m128i;
#[cfg(not(target_arch = "x86_64"))]
type Both = [u64; 2];

/// Bytes of a pair.
pub const PAIR: usize = size_of::<Pair>();

/// Two words, in a register that is stored as one.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
pub struct Pair(Both);

impl Pair {
    /// The words at `from[AT..]`, with a load for each, of which the compiler would make one.
    ///
    /// ```
    /// # use dunlin_msgbuf::Pair;
    /// let mut to = [0; 16];
    /// Pair::load::<1, _>(&[1; 17]).store(&mut to);
    /// assert_eq!(to, [1; 16]);
    /// ```
    #[inline(always)]
    pub fn load<const AT: usize, const N: usize>(from: &[u8; N]) -> Self {
        const { assert!(AT + PAIR <= N, "the words are some of the bytes") };
        // SAFETY: the words at this offset are bytes of `from`.
        Self(unsafe { load::<AT>(from.as_ptr()) })
    }

    /// Stores both words at once.
    #[inline(always)]
    pub fn store(self, to: &mut [u8; PAIR]) {
        // SAFETY: a pair has as many bytes, all of which are initialised; the place needs no
        // alignment.
        unsafe { to.as_mut_ptr().cast::<Self>().write_unaligned(self) }
    }
}

/// # Safety
/// `from` is good for reading two words at the offset, at any alignment.
#[cfg(all(target_arch = "x86_64", target_feature = "avx", not(miri)))]
#[inline(always)]
unsafe fn load<const AT: usize>(from: *const u8) -> Both {
    let pair;
    // SAFETY: the instructions read these words, and the code is compiled for processors that have
    // them.
    unsafe {
        std::arch::asm!(
            "vmovq {pair}, qword ptr [{from} + {at}]",
            "vmovhps {pair}, {pair}, qword ptr [{from} + {at} + 8]",
            from = in(reg) from,
            at = const AT,
            pair = out(xmm_reg) pair,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    pair
}

/// The same on processors without wide registers.
///
/// # Safety
/// As above.
#[cfg(all(target_arch = "x86_64", not(target_feature = "avx"), not(miri)))]
#[inline(always)]
unsafe fn load<const AT: usize>(from: *const u8) -> Both {
    let pair;
    // SAFETY: as above; every x86-64 has the instructions.
    unsafe {
        std::arch::asm!(
            "movq {pair}, qword ptr [{from} + {at}]",
            "movhps {pair}, qword ptr [{from} + {at} + 8]",
            from = in(reg) from,
            at = const AT,
            pair = out(xmm_reg) pair,
            options(pure, readonly, nostack, preserves_flags),
        );
    }
    pair
}

/// The same without instructions of our choice.
///
/// # Safety
/// As above.
#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
unsafe fn load<const AT: usize>(from: *const u8) -> Both {
    /// A word at any address.
    #[derive(Clone, Copy)]
    #[repr(C, packed)]
    struct Unaligned(u64);

    // SAFETY: the caller promises both words. The loads are volatile, so that the compiler does not
    // make one of them.
    let word = |place| unsafe { from.add(AT).cast::<Unaligned>().add(place).read_volatile() }.0;
    both(word(0), word(1))
}

#[cfg(all(target_arch = "x86_64", miri))]
fn both(low: u64, high: u64) -> Both {
    // SAFETY: every x86-64 has the instruction.
    unsafe { std::arch::x86_64::_mm_set_epi64x(high.cast_signed(), low.cast_signed()) }
}

#[cfg(not(target_arch = "x86_64"))]
fn both(low: u64, high: u64) -> Both {
    [low, high]
}

#[cfg(test)]
mod tests;
