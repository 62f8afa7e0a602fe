/* Pointer chasing (G-Opt 2.5 and 3.3): nothing but dependent reads. */
#include "lookup.h"

#ifndef WIDTH

typedef uint32_t key_type;
typedef uint32_t value_type;
#include "shape.h"

struct table {
    const uint32_t *next;
    uint64_t depth;
};

static void plain(ARGUMENTS)
{
    (void)width;
    for (size_t i = 0; i < n; i++) {
        uint32_t at = key_of(&items[i]);
        for (uint64_t steps = table->depth; steps; steps--)
            at = table->next[at];
        finish(&out[i], &items[i], at);
    }
}

static void hand(ARGUMENTS)
{
    const uint32_t *next = table->next;
    for (size_t begin = 0; begin < n; begin += width) {
        size_t group = n - begin < width ? n - begin : width;
        uint32_t at[MAX_WIDTH];
        for (size_t i = 0; i < group; i++)
            at[i] = key_of(&items[begin + i]);
        for (uint64_t steps = table->depth; steps; steps--) {
            for (size_t i = 0; i < group; i++)
                __builtin_prefetch(&next[at[i]]);
            for (size_t i = 0; i < group; i++)
                at[i] = next[at[i]];
        }
        for (size_t i = 0; i < group; i++)
            finish(&out[begin + i], &items[begin + i], at[i]);
    }
}

#else

static void MARKED(ARGUMENTS)
{
    (void)width;
    const uint32_t *next = table->next;
    foreach (i, n) {
        uint32_t at = key_of(&items[i]);
        for (uint64_t steps = table->depth; steps; steps--) {
            g_expensive(&next[at]);
            at = next[at];
        }
        finish(&out[i], &items[i], at);
    }
}

#endif
