/* IPv6 routing in a multi-bit trie (G-Opt 3.3): four to six dependent accesses for prefixes of
 * 48 to 64 bits. */
#include "lookup.h"

#ifndef WIDTH

typedef unsigned __int128 key_type;
typedef struct found_u32 value_type;
#include "shape.h"
#include "trie.h"

/* Bits of the address that select the first word. */
#define FIRST_BITS 24

static inline const uint32_t *first(const struct table *table, key_type address)
{
    return &table->first[(size_t)(address >> (128 - FIRST_BITS))];
}

/* At least eight bits of an address, from `depth` on, which is a multiple of eight. The next eight
 * bits never lie in both halves of an address, so this avoids shifts of 128 bits, which cost more
 * than the rest of a step. */
static inline uint64_t bits_from(key_type address, unsigned depth)
{
    uint64_t half = (uint64_t)(depth < 64 ? address >> 64 : address);
    return half << depth % 64;
}

/* The next word, which the first eight of these bits select. */
static inline const uint32_t *next(const struct table *table, uint32_t word, uint64_t bits)
{
    return in_group(table, word, (uint32_t)(bits >> 56));
}

static void plain(ARGUMENTS)
{
    (void)width;
    for (size_t i = 0; i < n; i++) {
        key_type address = key_of(&items[i]);
        uint32_t word = *first(table, address);
        /* Two registers are shifted faster than bits are counted; in memory it is the other way
         * round. */
        for (key_type rest = address << FIRST_BITS; word & DEEPER; rest <<= 8)
            word = *next(table, word, (uint64_t)(rest >> 64));
        finish(&out[i], &items[i], hop(word));
    }
}

static void hand(ARGUMENTS)
{
    for (size_t begin = 0; begin < n; begin += width) {
        size_t group = n - begin < width ? n - begin : width;
        key_type addresses[MAX_WIDTH];
        const uint32_t *words[MAX_WIDTH];
        /* Items whose search continues, packed, so that a level costs nothing for the others. */
        size_t open[MAX_WIDTH], count = group;
        for (size_t i = 0; i < group; i++) {
            addresses[i] = key_of(&items[begin + i]);
            words[i] = first(table, addresses[i]);
            __builtin_prefetch(words[i]);
            open[i] = i;
        }
        for (unsigned depth = FIRST_BITS; count; depth += 8) {
            size_t deeper = 0;
            for (size_t at = 0; at < count; at++) {
                size_t i = open[at];
                uint32_t word = *words[i];
                if (word & DEEPER) {
                    words[i] = next(table, word, bits_from(addresses[i], depth));
                    __builtin_prefetch(words[i]);
                    open[deeper++] = i;
                } else {
                    finish(&out[begin + i], &items[begin + i], hop(word));
                }
            }
            count = deeper;
        }
    }
}

#else

static void MARKED(ARGUMENTS)
{
    (void)width;
    foreach (i, n) {
        key_type address = key_of(&items[i]);
        const uint32_t *at = first(table, address);
        /* With only one mark, nearly all switches lead to the same place, and are predicted. */
        for (unsigned depth = FIRST_BITS;; depth += 8) {
            g_expensive(at);
            if (!(*at & DEEPER))
                break;
            at = next(table, *at, bits_from(address, depth));
        }
        finish(&out[i], &items[i], hop(*at));
    }
}

#endif
