/*
 * Look-ups in three forms: `plain` (one item after the other), `gopt` (the same, marked; what the
 * tool transforms) and `hand` (group prefetching, G-Opt 3.1.1). All three of a look-up stand in one
 * file, which is given to gopt as a whole, and fill `out` with the same values.
 */
#ifndef LOOKUPS_H
#define LOOKUPS_H

#include <stddef.h>
#include <stdint.h>

#include "gopt.h"

/* Items that the hand-written forms handle at once; gopt's --batch is the same by default. */
#ifndef GROUP
#define GROUP 16
#endif

/* A 64-bit mix (the finaliser of splitmix64). */
static inline uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

/* pointer-chasing: `depth` dependent reads in a table of indices. */
#define CHASE_ARGS const uint32_t *next, int depth, const uint32_t *start, uint32_t *out, size_t n
void chase_plain(CHASE_ARGS);
void chase_gopt(CHASE_ARGS);
void chase_hand(CHASE_ARGS);

/* cuckoo: two hashes, eight slots; a bucket is two lines. The value 0 says that there is none. */
struct cuckoo_bucket {
    uint64_t keys[8];
    uint64_t values[8];
} __attribute__((aligned(64)));

struct cuckoo {
    struct cuckoo_bucket *buckets;
    uint64_t mask;
};

int cuckoo_insert(const struct cuckoo *table, uint64_t key, uint64_t value);
#define CUCKOO_ARGS const struct cuckoo *table, const uint64_t *keys, uint64_t *out, size_t n
void cuckoo_plain(CUCKOO_ARGS);
void cuckoo_gopt(CUCKOO_ARGS);
void cuckoo_hand(CUCKOO_ARGS);

/* ipv4: DIR-24-8. An entry of `first` with the top bit set names a block of 256 in `second`. */
struct ipv4 {
    uint16_t *first;
    uint16_t *second;
};

#define IPV4_LONG 0x8000u
#define IPV4_ARGS const struct ipv4 *table, const uint32_t *addresses, uint16_t *out, size_t n
void ipv4_plain(IPV4_ARGS);
void ipv4_gopt(IPV4_ARGS);
void ipv4_hand(IPV4_ARGS);

/* mica: an index of buckets with seven tags and log offsets, and a log of keys and values. */
struct mica_bucket {
    uint64_t slots[8]; /* tag in the upper 16 bits, offset + 1 in the others; 0: empty */
};

struct mica_entry {
    uint64_t key;
    uint64_t value[7];
};

struct mica {
    struct mica_bucket *buckets;
    struct mica_entry *log;
    uint64_t mask;
    uint64_t used;
};

int mica_insert(struct mica *table, uint64_t key, uint64_t value);
#define MICA_ARGS const struct mica *table, const uint64_t *keys, uint64_t *out, size_t n
void mica_plain(MICA_ARGS);
void mica_gopt(MICA_ARGS);
void mica_hand(MICA_ARGS);

#endif
