/*
 * The work of a program for an item, in addition to the look-up: nothing, or, if `HANDLER` is
 * defined, the work of a packet handler (`src/work.rs` does the same, with the same results). Each
 * look-up includes this after it has defined `key_type` and `value_type`.
 */
#ifndef SHAPE_H
#define SHAPE_H

#ifdef HANDLER

/* Rounds of mixing on each side of the look-up. */
#define ROUNDS 9

typedef struct {
    uint64_t words[8];
    key_type key;
} item_type;

typedef struct {
    value_type value;
    uint64_t digest;
} out_type;

/* A function that the compiler cannot shorten, of `8 * ROUNDS` words. */
static __attribute__((noinline)) uint64_t digest(const uint64_t *words, uint64_t seed)
{
    uint64_t sums[4] = {seed, seed, seed, seed};
    uint64_t rounds = ROUNDS;
    __asm__ volatile("" : "+r"(rounds));
    for (uint64_t round = 0; round < rounds; round++) {
        for (int at = 0; at < 8; at++) {
            uint64_t sum = sums[at % 4];
            sums[at % 4] = ((sum << 5 | sum >> 59) ^ words[at]) + round;
        }
    }
    return sums[0] + sums[1] + sums[2] + sums[3];
}

static inline key_type key_of(const item_type *item)
{
    /* This check must end before the key is used, as in a handler that drops bad packets first. */
    uint64_t checked = digest(item->words, 1);
    __asm__ volatile("" : : "r"(checked) : "memory");
    return item->key;
}

static inline void finish(out_type *out, const item_type *item, value_type value)
{
    out->value = value;
    out->digest = digest(item->words, 2);
}

#else

typedef key_type item_type;
typedef value_type out_type;

static inline key_type key_of(const item_type *item)
{
    return *item;
}

static inline void finish(out_type *out, const item_type *item, value_type value)
{
    (void)item;
    *out = value;
}

#endif

/* All forms are called alike; only `hand` looks at the width. */
#define ARGUMENTS                                                                                 \
    const struct table *table, size_t width, const item_type *items, out_type *out, size_t n

#endif
