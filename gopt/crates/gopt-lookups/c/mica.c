/* The table of MICA in its cache mode (HERD 4.1): an index of buckets, and a circular log of
 * entries. */
#include "lookup.h"

#ifndef WIDTH

#define SLOTS 8
#define WORDS 3

/* A slot keeps a position in this many bits, above which the tag lies. */
#define POSITION_BITS 48
#define POSITION ((1ull << POSITION_BITS) - 1)

typedef uint64_t key_type;
typedef struct {
    uint64_t is_found;
    uint64_t words[WORDS];
} value_type;
#include "compare.h"
#include "shape.h"

struct bucket {
    uint64_t slots[SLOTS];
};
_Static_assert(sizeof(struct bucket) == 64, "as in Rust");

struct entry {
    uint64_t key;
    uint64_t value[WORDS];
};
_Static_assert(sizeof(struct entry) == 32, "as in Rust");

struct table {
    const struct bucket *buckets;
    uint64_t bucket_mask;
    const struct entry *entries;
    uint64_t entry_mask;
    uint64_t head;
};

static inline const struct bucket *bucket_of(const struct table *table, uint64_t hash)
{
    return &table->buckets[hash & table->bucket_mask];
}

/* The slot of the lowest candidate. */
static inline uint64_t lowest(const struct bucket *bucket, uint32_t agree)
{
    return bucket->slots[__builtin_ctz(agree)];
}

/* Whether the log still holds the entry of the slot. */
static inline int is_held(const struct table *table, uint64_t slot)
{
    uint64_t position = slot & POSITION;
    uint64_t age = (table->head - position) & POSITION;
    return position != 0 && age <= table->entry_mask;
}

/* Skips the lowest candidates up to one whose entry the log holds, nearly always the first. */
static inline uint32_t held(const struct table *table, const struct bucket *bucket, uint32_t agree)
{
    while (agree && !is_held(table, lowest(bucket, agree)))
        agree &= agree - 1;
    return agree;
}

/* The slots of a bucket that may hold the key. */
static inline uint32_t candidates(const struct table *table, const struct bucket *bucket,
                                  uint64_t hash)
{
    uint32_t agree = equal_u64_from(&bucket->slots[0], hash, POSITION_BITS)
        | equal_u64_from(&bucket->slots[4], hash, POSITION_BITS) << 4;
    return held(table, bucket, agree);
}

/* The entry of the lowest candidate. */
static inline const struct entry *candidate(const struct table *table, const struct bucket *bucket,
                                            uint32_t agree)
{
    return &table->entries[lowest(bucket, agree) & POSITION & table->entry_mask];
}

static inline value_type value_of(const struct entry *entry)
{
    return (value_type){1, {entry->value[0], entry->value[1], entry->value[2]}};
}

/* Compares candidates one by one; nearly always the first one has the key, if it is there. */
static inline value_type search(const struct table *table, const struct bucket *bucket,
                                uint32_t agree, uint64_t key)
{
    for (; agree; agree = held(table, bucket, agree & (agree - 1))) {
        const struct entry *entry = candidate(table, bucket, agree);
        if (entry->key == key)
            return value_of(entry);
    }
    return (value_type){0, {0, 0, 0}};
}

static void plain(ARGUMENTS)
{
    (void)width;
    for (size_t i = 0; i < n; i++) {
        uint64_t key = key_of(&items[i]);
        uint64_t hash = mix(key);
        const struct bucket *bucket = bucket_of(table, hash);
        uint32_t agree = candidates(table, bucket, hash);
        finish(&out[i], &items[i], search(table, bucket, agree, key));
    }
}

static void hand(ARGUMENTS)
{
    for (size_t begin = 0; begin < n; begin += width) {
        size_t group = n - begin < width ? n - begin : width;
        uint64_t keys[MAX_WIDTH], hashes[MAX_WIDTH];
        uint32_t agree[MAX_WIDTH];
        for (size_t i = 0; i < group; i++) {
            keys[i] = key_of(&items[begin + i]);
            hashes[i] = mix(keys[i]);
            __builtin_prefetch(bucket_of(table, hashes[i]));
        }
        for (size_t i = 0; i < group; i++) {
            const struct bucket *bucket = bucket_of(table, hashes[i]);
            agree[i] = candidates(table, bucket, hashes[i]);
            if (agree[i])
                __builtin_prefetch(candidate(table, bucket, agree[i]));
        }
        for (size_t i = 0; i < group; i++) {
            value_type found = search(table, bucket_of(table, hashes[i]), agree[i], keys[i]);
            finish(&out[begin + i], &items[begin + i], found);
        }
    }
}

#else

static void MARKED(ARGUMENTS)
{
    (void)width;
    foreach (i, n) {
        uint64_t key = key_of(&items[i]);
        uint64_t hash = mix(key);
        const struct bucket *bucket = bucket_of(table, hash);
        g_expensive(bucket);
        uint32_t agree = candidates(table, bucket, hash);
        value_type found = {0, {0, 0, 0}};
        while (agree) {
            g_expensive(candidate(table, bucket, agree));
            const struct entry *entry = candidate(table, bucket, agree);
            if (entry->key == key) {
                found = value_of(entry);
                break;
            }
            agree = held(table, bucket, agree & (agree - 1));
        }
        finish(&out[i], &items[i], found);
    }
}

#endif
