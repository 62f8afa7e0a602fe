/* IPv4 routing with DIR-24-8 (G-Opt 4): one access for most addresses, two for the others. */
#include "lookup.h"

#ifndef WIDTH

typedef uint32_t key_type;
typedef struct found_u32 value_type;
#include "shape.h"
#include "trie.h"

static inline const uint32_t *first(const struct table *table, uint32_t address)
{
    return &table->first[address >> 8];
}

static inline const uint32_t *second(const struct table *table, uint32_t word, uint32_t address)
{
    return in_group(table, word, address & 0xFF);
}

static void plain(ARGUMENTS)
{
    (void)width;
    for (size_t i = 0; i < n; i++) {
        uint32_t address = key_of(&items[i]);
        uint32_t word = *first(table, address);
        if (word & DEEPER)
            word = *second(table, word, address);
        finish(&out[i], &items[i], hop(word));
    }
}

static void hand(ARGUMENTS)
{
    for (size_t begin = 0; begin < n; begin += width) {
        size_t group = n - begin < width ? n - begin : width;
        uint32_t addresses[MAX_WIDTH];
        const uint32_t *words[MAX_WIDTH];
        size_t deeper[MAX_WIDTH], count = 0;
        for (size_t i = 0; i < group; i++) {
            addresses[i] = key_of(&items[begin + i]);
            __builtin_prefetch(first(table, addresses[i]));
        }
        for (size_t i = 0; i < group; i++) {
            uint32_t word = *first(table, addresses[i]);
            if (word & DEEPER) {
                words[count] = second(table, word, addresses[i]);
                __builtin_prefetch(words[count]);
                deeper[count++] = begin + i;
            } else {
                finish(&out[begin + i], &items[begin + i], hop(word));
            }
        }
        for (size_t at = 0; at < count; at++)
            finish(&out[deeper[at]], &items[deeper[at]], hop(*words[at]));
    }
}

#else

static void MARKED(ARGUMENTS)
{
    (void)width;
    foreach (i, n) {
        uint32_t address = key_of(&items[i]);
        const uint32_t *at = first(table, address);
        /* Two rounds at most. With only one mark, all switches lead to the same place, and are
         * predicted. */
        for (;;) {
            g_expensive(at);
            if (!(*at & DEEPER))
                break;
            at = second(table, *at, address);
        }
        finish(&out[i], &items[i], hop(*at));
    }
}

#endif
