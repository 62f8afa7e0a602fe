/* Pointer chasing (G-Opt 2.5, 3.3): nothing but dependent reads. */
#include "lookups.h"

void chase_plain(CHASE_ARGS)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t at = start[i];
        for (int hop = 0; hop < depth; hop++)
            at = next[at];
        out[i] = at;
    }
}

void chase_gopt(CHASE_ARGS)
{
    foreach (i, n) {
        uint32_t at = start[i];
        for (int hop = 0; hop < depth; hop++) {
            g_expensive(&next[at]);
            at = next[at];
        }
        out[i] = at;
    }
}

void chase_hand(CHASE_ARGS)
{
    for (size_t begin = 0; begin < n; begin += GROUP) {
        size_t count = n - begin < GROUP ? n - begin : GROUP;
        uint32_t at[GROUP];
        for (size_t i = 0; i < count; i++) {
            at[i] = start[begin + i];
            __builtin_prefetch(&next[at[i]]);
        }
        for (int hop = 0; hop < depth; hop++) {
            for (size_t i = 0; i < count; i++) {
                at[i] = next[at[i]];
                __builtin_prefetch(&next[at[i]]);
            }
        }
        for (size_t i = 0; i < count; i++)
            out[begin + i] = at[i];
    }
}
