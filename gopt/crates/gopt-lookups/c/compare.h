/*
 * Compares all slots of a bucket or node with a key at once, without branches: no
 * processor can predict the slot. Plain loops become vectors for a part of the slots only, if at
 * all. `src/compare.rs` does the same in Rust.
 */
#ifndef COMPARE_H
#define COMPARE_H

#ifdef __AVX2__
#include <immintrin.h>
#endif

typedef uint32_t eight_u32 __attribute__((vector_size(32)));
typedef uint64_t four_u64 __attribute__((vector_size(32)));

/* Bit `i` is set if `keys[i] == key`, of eight keys. */
static inline uint32_t equal_u32(const uint32_t *keys, uint32_t key)
{
    eight_u32 equal;
    __builtin_memcpy(&equal, keys, sizeof equal);
    equal = (eight_u32)(equal == key);
#ifdef __AVX2__
    return (uint32_t)_mm256_movemask_ps((__m256)equal);
#else
    uint32_t mask = 0;
    for (int at = 0; at < 8; at++)
        mask |= (equal[at] & 1) << at;
    return mask;
#endif
}

/* Bit `i` is set if `words[i]` and `word` agree from bit `shift` on, of four words. */
static inline uint32_t equal_u64_from(const uint64_t *words, uint64_t word, int shift)
{
    four_u64 equal;
    __builtin_memcpy(&equal, words, sizeof equal);
    equal = (four_u64)((equal ^ word) >> shift == 0);
#ifdef __AVX2__
    return (uint32_t)_mm256_movemask_pd((__m256d)equal);
#else
    uint32_t mask = 0;
    for (int at = 0; at < 4; at++)
        mask |= (uint32_t)(equal[at] & 1) << at;
    return mask;
#endif
}

/* Counts the words that are at most `word`, and not all ones; `len` is a multiple of four. */
static inline uint64_t count_up_to(const uint64_t *words, int len, uint64_t word)
{
    four_u64 count = {0, 0, 0, 0};
    for (int at = 0; at < len; at += 4) {
        four_u64 some;
        __builtin_memcpy(&some, words + at, sizeof some);
        count -= (four_u64)(some <= word) & (four_u64)(some != UINT64_MAX);
    }
    return count[0] + count[1] + count[2] + count[3];
}

#endif
