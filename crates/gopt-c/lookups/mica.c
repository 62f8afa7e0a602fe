/* A MICA table: the index names an entry of the log by tag and offset; the log has the key. */
#include "lookups.h"

#define OFFSET_BITS 48

static inline const struct mica_entry *find(const struct mica *table,
                                            const struct mica_bucket *bucket, uint64_t hash)
{
    for (int slot = 0; slot < 8; slot++) {
        uint64_t found = bucket->slots[slot];
        if (found && found >> OFFSET_BITS == hash >> OFFSET_BITS)
            return &table->log[(found & ((1ull << OFFSET_BITS) - 1)) - 1];
    }
    return NULL;
}

/* 0 if the bucket is full, or already has the tag. */
int mica_insert(struct mica *table, uint64_t key, uint64_t value)
{
    uint64_t hash = mix(key);
    struct mica_bucket *bucket = &table->buckets[hash & table->mask];
    if (find(table, bucket, hash))
        return 0;
    for (int slot = 0; slot < 8; slot++) {
        if (!bucket->slots[slot]) {
            struct mica_entry *entry = &table->log[table->used++];
            entry->key = key;
            entry->value[0] = value;
            bucket->slots[slot] = (hash >> OFFSET_BITS) << OFFSET_BITS | table->used;
            return 1;
        }
    }
    return 0;
}

void mica_plain(MICA_ARGS)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t hash = mix(keys[i]);
        const struct mica_entry *entry = find(table, &table->buckets[hash & table->mask], hash);
        out[i] = entry && entry->key == keys[i] ? entry->value[0] : 0;
    }
}

void mica_gopt(MICA_ARGS)
{
    foreach (i, n) {
        uint64_t hash = mix(keys[i]);
        const struct mica_bucket *bucket = &table->buckets[hash & table->mask];
        g_expensive(bucket);
        const struct mica_entry *entry = find(table, bucket, hash);
        out[i] = 0;
        if (entry) {
            g_expensive(entry);
            if (entry->key == keys[i])
                out[i] = entry->value[0];
        }
    }
}

void mica_hand(MICA_ARGS)
{
    for (size_t begin = 0; begin < n; begin += GROUP) {
        size_t count = n - begin < GROUP ? n - begin : GROUP;
        uint64_t hash[GROUP];
        const struct mica_entry *entry[GROUP];
        for (size_t i = 0; i < count; i++) {
            hash[i] = mix(keys[begin + i]);
            __builtin_prefetch(&table->buckets[hash[i] & table->mask]);
        }
        for (size_t i = 0; i < count; i++) {
            entry[i] = find(table, &table->buckets[hash[i] & table->mask], hash[i]);
            if (entry[i])
                __builtin_prefetch(entry[i]);
        }
        for (size_t i = 0; i < count; i++) {
            int is_there = entry[i] && entry[i]->key == keys[begin + i];
            out[begin + i] = is_there ? entry[i]->value[0] : 0;
        }
    }
}
