/* A 2-8 cuckoo hash table (G-Opt 3.3): two hashes, eight slots for each. */
#include "lookups.h"

static inline uint64_t other_bucket(const struct cuckoo *table, uint64_t bucket, uint64_t hash)
{
    return (bucket ^ mix((hash >> 48) + 1)) & table->mask;
}

static inline int find(const struct cuckoo_bucket *bucket, uint64_t key)
{
    for (int slot = 0; slot < 8; slot++)
        if (bucket->keys[slot] == key)
            return slot;
    return -1;
}

/* 0 if both buckets stay full after some keys have moved. */
int cuckoo_insert(const struct cuckoo *table, uint64_t key, uint64_t value)
{
    uint64_t hash = mix(key), at = hash & table->mask;
    for (int tries = 0; tries < 500; tries++) {
        uint64_t both[2] = {at, other_bucket(table, at, hash)};
        for (int i = 0; i < 2; i++) {
            struct cuckoo_bucket *bucket = &table->buckets[both[i]];
            int slot = find(bucket, 0);
            if (slot >= 0) {
                bucket->keys[slot] = key;
                bucket->values[slot] = value;
                return 1;
            }
        }
        struct cuckoo_bucket *full = &table->buckets[both[1]];
        int slot = (int)((hash >> 20) + (uint64_t)tries) & 7;
        uint64_t moved_key = full->keys[slot], moved_value = full->values[slot];
        full->keys[slot] = key;
        full->values[slot] = value;
        key = moved_key;
        value = moved_value;
        hash = mix(key);
        at = both[1];
    }
    return 0;
}

void cuckoo_plain(CUCKOO_ARGS)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t hash = mix(keys[i]), at = hash & table->mask;
        uint64_t value = 0;
        for (int tries = 0; tries < 2; tries++) {
            const struct cuckoo_bucket *bucket = &table->buckets[at];
            int slot = find(bucket, keys[i]);
            if (slot >= 0) {
                value = bucket->values[slot];
                break;
            }
            at = other_bucket(table, at, hash);
        }
        out[i] = value;
    }
}

void cuckoo_gopt(CUCKOO_ARGS)
{
    foreach (i, n) {
        uint64_t hash = mix(keys[i]), at = hash & table->mask;
        uint64_t value = 0;
        for (int tries = 0; tries < 2; tries++) {
            const struct cuckoo_bucket *bucket = &table->buckets[at];
            __builtin_prefetch(bucket->values);
            g_expensive(bucket);
            int slot = find(bucket, keys[i]);
            if (slot >= 0) {
                value = bucket->values[slot];
                break;
            }
            at = other_bucket(table, at, hash);
        }
        out[i] = value;
    }
}

void cuckoo_hand(CUCKOO_ARGS)
{
    for (size_t begin = 0; begin < n; begin += GROUP) {
        size_t count = n - begin < GROUP ? n - begin : GROUP;
        const struct cuckoo_bucket *bucket[GROUP];
        uint64_t missing = 0;
        for (size_t i = 0; i < count; i++) {
            bucket[i] = &table->buckets[mix(keys[begin + i]) & table->mask];
            __builtin_prefetch(bucket[i]->keys);
            __builtin_prefetch(bucket[i]->values);
        }
        for (size_t i = 0; i < count; i++) {
            uint64_t key = keys[begin + i];
            int slot = find(bucket[i], key);
            out[begin + i] = slot >= 0 ? bucket[i]->values[slot] : 0;
            if (slot < 0) {
                uint64_t at = (uint64_t)(bucket[i] - table->buckets);
                bucket[i] = &table->buckets[other_bucket(table, at, mix(key))];
                __builtin_prefetch(bucket[i]->keys);
                __builtin_prefetch(bucket[i]->values);
                missing |= 1ull << i;
            }
        }
        for (; missing; missing &= missing - 1) {
            size_t i = (size_t)__builtin_ctzll(missing);
            int slot = find(bucket[i], keys[begin + i]);
            out[begin + i] = slot >= 0 ? bucket[i]->values[slot] : 0;
        }
    }
}
