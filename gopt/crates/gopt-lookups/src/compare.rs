//! Compares all slots of a bucket or node with a key at once, without branches, because no
//! processor can predict the slot. Plain loops compile to vectors for half of the slots only, so
//! they take twice as long. `c/compare.h` does the same in C.
//!
//! Invariant: code for processors without 32-byte vectors gives the same masks. Called by `cuckoo`,
//! `mica` and `btree`.

/// Bit `i` is set if `keys[i] == key`.
#[inline(always)]
pub(crate) fn equal_u32(keys: &[u32; 8], key: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
    {
        avx2::equal_u32(keys, key)
    }
    #[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
    {
        scalar::equal_u32(keys, key)
    }
}

/// Bit `i` is set if `words[i]` and `word` agree from bit `SHIFT` on.
#[inline(always)]
pub(crate) fn equal_u64_from<const SHIFT: i32>(words: &[u64], word: u64) -> u32 {
    let (fours, _) = words.as_chunks::<4>();
    let mut mask = 0;
    for (at, four) in fours.iter().enumerate() {
        #[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
        let some = avx2::equal_u64_from::<SHIFT>(four, word);
        #[cfg(not(all(target_arch = "x86_64", target_feature = "avx2")))]
        let some = scalar::equal_u64_from::<SHIFT>(four, word);
        mask |= some << (4 * at);
    }
    mask
}

#[cfg(all(target_arch = "x86_64", target_feature = "avx2"))]
mod avx2 {
    use std::arch::x86_64::*;

    #[inline(always)]
    pub(super) fn equal_u32(keys: &[u32; 8], key: u32) -> u32 {
        // SAFETY: this is only compiled for processors with AVX2, and the array has 32 bytes.
        unsafe {
            let keys = _mm256_loadu_si256(keys.as_ptr().cast());
            let equal = _mm256_cmpeq_epi32(keys, _mm256_set1_epi32(key.cast_signed()));
            _mm256_movemask_ps(_mm256_castsi256_ps(equal)).cast_unsigned()
        }
    }

    #[inline(always)]
    pub(super) fn equal_u64_from<const SHIFT: i32>(words: &[u64; 4], word: u64) -> u32 {
        // SAFETY: as above.
        unsafe {
            let words = _mm256_loadu_si256(words.as_ptr().cast());
            let differ = _mm256_xor_si256(words, _mm256_set1_epi64x(word.cast_signed()));
            let differ = _mm256_srli_epi64::<SHIFT>(differ);
            let equal = _mm256_cmpeq_epi64(differ, _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(equal)).cast_unsigned()
        }
    }
}

#[cfg(any(test, not(all(target_arch = "x86_64", target_feature = "avx2"))))]
mod scalar {
    pub(super) fn equal_u32(keys: &[u32; 8], key: u32) -> u32 {
        let bits = keys.iter().enumerate();
        bits.fold(0, |mask, (at, &other)| mask | u32::from(other == key) << at)
    }

    pub(super) fn equal_u64_from<const SHIFT: i32>(words: &[u64; 4], word: u64) -> u32 {
        let bits = words.iter().enumerate();
        bits.fold(0, |mask, (at, &other)| {
            mask | u32::from((other ^ word) >> SHIFT == 0) << at
        })
    }
}

#[cfg(test)]
mod tests;
