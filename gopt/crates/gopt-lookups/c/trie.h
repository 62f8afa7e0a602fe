/* Words of the multi-bit trie under `ipv4` and `ipv6`: 24 bits of the address select the first
 * one, 8 each further one. */
#ifndef TRIE_H
#define TRIE_H

/* Set in a word that is not empty. */
#define SET (1u << 31)

/* Set in a word that contains the number of a group of 256 words. */
#define DEEPER (1u << 30)

/* The largest next hop, and the largest number of a group. */
#define MAX_HOP ((1u << 30) - 1)

struct table {
    const uint32_t *first;
    const uint32_t *groups;
};

/* The content of a word that leads to no group. */
static inline value_type hop(uint32_t word)
{
    return (value_type){word >> 31, word & MAX_HOP};
}

static inline const uint32_t *in_group(const struct table *table, uint32_t word, uint32_t byte)
{
    return &table->groups[(size_t)(word & MAX_HOP) * 256 + byte];
}

#endif
