/* A static B+-tree of sixteen keys a node; the children of a node are found by arithmetic. */
#include "lookup.h"

#ifndef WIDTH

/* Keys of a node, and children of an inner node. */
#define KEYS 16
#define FAN 17

/* The most levels above the leaves: 17^16 is more than 2^64. */
#define MAX_INNER 16

/* Fills the rest of nodes, and cannot be a key. */
#define RESERVED UINT64_MAX

typedef uint64_t key_type;
typedef struct found_u64 value_type;
#include "compare.h"
#include "shape.h"

struct node {
    uint64_t keys[KEYS];
} __attribute__((aligned(128)));
_Static_assert(sizeof(struct node) == 128, "as in Rust");

struct table {
    const struct node *inner[MAX_INNER];
    uint64_t inner_levels;
    const struct node *leaves;
    const uint64_t *values;
};

/* The child that may hold the key: its index is the number of keys that are at most the key. */
static inline size_t child(const struct node *node, uint64_t key)
{
    return count_up_to(node->keys, KEYS, key);
}

/* The place of the key in a leaf, or -1. */
static inline int slot(const struct node *leaf, uint64_t key)
{
    uint32_t equal = 0;
    for (int at = 0; at < KEYS; at += 4)
        equal |= equal_u64_from(&leaf->keys[at], key, 0) << at;
    return equal && key != RESERVED ? __builtin_ctz(equal) : -1;
}

/* Prefetches both lines of a node. */
static inline void prefetch(const struct node *node)
{
    __builtin_prefetch(&node->keys[0]);
    __builtin_prefetch(&node->keys[KEYS / 2]);
}

static void plain(ARGUMENTS)
{
    (void)width;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = key_of(&items[i]);
        size_t at = 0;
        for (size_t level = 0; level < table->inner_levels; level++)
            at = at * FAN + child(&table->inner[level][at], key);
        int found = slot(&table->leaves[at], key);
        value_type value = {0, 0};
        if (found >= 0)
            value = (value_type){1, table->values[at * KEYS + (size_t)found]};
        finish(&out[i], &items[i], value);
    }
}

static void hand(ARGUMENTS)
{
    for (size_t begin = 0; begin < n; begin += width) {
        size_t group = n - begin < width ? n - begin : width;
        uint64_t keys[MAX_WIDTH];
        size_t at[MAX_WIDTH];
        const uint64_t *values[MAX_WIDTH];
        for (size_t i = 0; i < group; i++) {
            keys[i] = key_of(&items[begin + i]);
            at[i] = 0;
        }
        for (size_t level = 0; level < table->inner_levels; level++) {
            const struct node *nodes = table->inner[level];
            for (size_t i = 0; i < group; i++)
                prefetch(&nodes[at[i]]);
            for (size_t i = 0; i < group; i++)
                at[i] = at[i] * FAN + child(&nodes[at[i]], keys[i]);
        }
        for (size_t i = 0; i < group; i++)
            prefetch(&table->leaves[at[i]]);
        for (size_t i = 0; i < group; i++) {
            int found = slot(&table->leaves[at[i]], keys[i]);
            values[i] = NULL;
            if (found >= 0) {
                values[i] = &table->values[at[i] * KEYS + (size_t)found];
                __builtin_prefetch(values[i]);
            }
        }
        for (size_t i = 0; i < group; i++) {
            value_type value = {0, 0};
            if (values[i])
                value = (value_type){1, *values[i]};
            finish(&out[begin + i], &items[begin + i], value);
        }
    }
}

#else

static void MARKED(ARGUMENTS)
{
    (void)width;
    foreach (i, n) {
        uint64_t key = key_of(&items[i]);
        size_t at = 0;
        for (size_t level = 0; level < table->inner_levels; level++) {
            const struct node *node = &table->inner[level][at];
            __builtin_prefetch(&node->keys[KEYS / 2]);
            g_expensive(&node->keys[0]);
            at = at * FAN + child(node, key);
        }
        const struct node *leaf = &table->leaves[at];
        __builtin_prefetch(&leaf->keys[KEYS / 2]);
        g_expensive(&leaf->keys[0]);
        int found = slot(leaf, key);
        value_type value = {0, 0};
        if (found >= 0) {
            const uint64_t *place = &table->values[at * KEYS + (size_t)found];
            g_expensive(place);
            value = (value_type){1, *place};
        }
        finish(&out[i], &items[i], value);
    }
}

#endif
