/* A cuckoo hash table with two hashes and eight slots (G-Opt 3.3): a bucket is one cache line. */
#include "lookup.h"

#ifndef WIDTH

typedef uint32_t key_type;
typedef struct found_u32 value_type;
#include "compare.h"
#include "shape.h"

/* Slots of a bucket. */
#define SLOTS 8

/* The key of a free slot. */
#define FREE 0

struct bucket {
    uint32_t keys[SLOTS];
    uint32_t values[SLOTS];
};
_Static_assert(sizeof(struct bucket) == 64, "as in Rust");

struct table {
    const struct bucket *buckets;
    uint64_t mask;
};

static inline const struct bucket *first(const struct table *table, uint64_t hash)
{
    return &table->buckets[(hash >> 32) & table->mask];
}

static inline const struct bucket *second(const struct table *table, uint64_t hash)
{
    return &table->buckets[(hash & 0xFFFFFFFFu) & table->mask];
}

static inline value_type value_in(const struct bucket *bucket, uint32_t key)
{
    uint32_t equal = equal_u32(bucket->keys, key);
    if (!equal || key == FREE)
        return (value_type){0, 0};
    return (value_type){1, bucket->values[__builtin_ctz(equal)]};
}

static void plain(ARGUMENTS)
{
    (void)width;
    for (size_t i = 0; i < n; i++) {
        uint32_t key = key_of(&items[i]);
        uint64_t hash = mix(key);
        value_type found = value_in(first(table, hash), key);
        if (!found.is_found)
            found = value_in(second(table, hash), key);
        finish(&out[i], &items[i], found);
    }
}

static void hand(ARGUMENTS)
{
    for (size_t begin = 0; begin < n; begin += width) {
        size_t group = n - begin < width ? n - begin : width;
        uint32_t keys[MAX_WIDTH];
        uint64_t hashes[MAX_WIDTH];
        size_t missed[MAX_WIDTH], misses = 0;
        for (size_t i = 0; i < group; i++) {
            keys[i] = key_of(&items[begin + i]);
            hashes[i] = mix(keys[i]);
            __builtin_prefetch(first(table, hashes[i]));
        }
        for (size_t i = 0; i < group; i++) {
            value_type found = value_in(first(table, hashes[i]), keys[i]);
            if (found.is_found) {
                finish(&out[begin + i], &items[begin + i], found);
            } else {
                __builtin_prefetch(second(table, hashes[i]));
                missed[misses++] = i;
            }
        }
        for (size_t miss = 0; miss < misses; miss++) {
            size_t i = missed[miss];
            value_type found = value_in(second(table, hashes[i]), keys[i]);
            finish(&out[begin + i], &items[begin + i], found);
        }
    }
}

#else

static void MARKED(ARGUMENTS)
{
    (void)width;
    foreach (i, n) {
        uint32_t key = key_of(&items[i]);
        const struct bucket *bucket = first(table, mix(key));
        g_expensive(bucket);
        value_type found = value_in(bucket, key);
        if (!found.is_found) {
            bucket = second(table, mix(key));
            g_expensive(bucket);
            found = value_in(bucket, key);
        }
        finish(&out[i], &items[i], found);
    }
}

#endif
