/*
 * Definitions that the files of all look-ups share.
 *
 * Each file has one look-up in three forms, `plain`, `hand` and `gopt`, over the tables that the
 * Rust code of the same name fills. It is compiled once for each shape. The build gives the whole
 * file to gopt for every width, and includes the results after the file itself, with `WIDTH`
 * defined. So a file has its common code under `#ifndef WIDTH`, and the marked form after the
 * `#else`. Names are short, because each look-up and shape is a translation unit of its own.
 */
#ifndef LOOKUP_H
#define LOOKUP_H

#include <stddef.h>
#include <stdint.h>

#include "gopt.h"

/* The most items that the hand-written forms have in flight, as in Rust. */
#define MAX_WIDTH 64

/* The name of the marked form: `marked_16` for 16 lanes. */
#define MARKED MARKED_OF(WIDTH)
#define MARKED_OF(width) MARKED_PASTE(width)
#define MARKED_PASTE(width) marked_##width

/* Values that may be absent, in the layout of Rust's `Option`; the Rust side checks the layout. */
struct found_u32 {
    uint32_t is_found;
    uint32_t value;
};

struct found_u64 {
    uint64_t is_found;
    uint64_t value;
};

/* A bijection that makes every bit depend on every other (the finalizer of SplitMix64). */
static inline uint64_t mix(uint64_t bits)
{
    bits = (bits ^ (bits >> 30)) * 0xBF58476D1CE4E5B9u;
    bits = (bits ^ (bits >> 27)) * 0x94D049BB133111EBu;
    return bits ^ (bits >> 31);
}

#endif
