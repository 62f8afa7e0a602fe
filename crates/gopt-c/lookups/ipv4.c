/* IPv4 forwarding with DIR-24-8 (G-Opt 4): one read for most addresses, two for the others. */
#include "lookups.h"

static inline size_t second_index(uint16_t entry, uint32_t address)
{
    return (size_t)(entry & ~IPV4_LONG) << 8 | (address & 255);
}

void ipv4_plain(IPV4_ARGS)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t entry = table->first[addresses[i] >> 8];
        if (entry & IPV4_LONG)
            entry = table->second[second_index(entry, addresses[i])];
        out[i] = entry;
    }
}

void ipv4_gopt(IPV4_ARGS)
{
    foreach (i, n) {
        const uint16_t *at = &table->first[addresses[i] >> 8];
        g_expensive(at);
        if (*at & IPV4_LONG) {
            at = &table->second[second_index(*at, addresses[i])];
            g_expensive(at);
        }
        out[i] = *at;
    }
}

void ipv4_hand(IPV4_ARGS)
{
    for (size_t begin = 0; begin < n; begin += GROUP) {
        size_t count = n - begin < GROUP ? n - begin : GROUP;
        uint64_t longer = 0;
        for (size_t i = 0; i < count; i++)
            __builtin_prefetch(&table->first[addresses[begin + i] >> 8]);
        for (size_t i = 0; i < count; i++) {
            uint16_t entry = table->first[addresses[begin + i] >> 8];
            out[begin + i] = entry;
            if (entry & IPV4_LONG) {
                __builtin_prefetch(&table->second[second_index(entry, addresses[begin + i])]);
                longer |= 1ull << i;
            }
        }
        for (; longer; longer &= longer - 1) {
            size_t i = begin + (size_t)__builtin_ctzll(longer);
            out[i] = table->second[second_index(out[i], addresses[i])];
        }
    }
}
