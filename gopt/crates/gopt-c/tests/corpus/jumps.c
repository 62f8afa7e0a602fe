/* goto inside of a lane, addresses of locals, and calls. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gopt.h"

static uint32_t hash(const void *data, size_t length)
{
    const unsigned char *bytes = data;
    uint32_t h = 2166136261u;
    while (length--)
        h = (h ^ *bytes++) * 16777619u;
    return h;
}

static void split(uint32_t h, uint32_t *high, uint32_t *low)
{
    *high = h >> 26;
    *low = h & 63;
}

static void find(const uint32_t *t, const uint32_t *keys, uint32_t *out, size_t n)
{
    foreach (i, n) {
        struct { uint32_t key; char pad[4]; } record = {keys[i], "abc"};
        uint32_t h = hash(&record, sizeof record), high, low, tries = 0;
        char buffer[8];
        split(h, &high, &low);
        memcpy(buffer, &h, sizeof h);
        uint32_t *current = &low;
    again:
        g_expensive(&t[*current]);
        if (t[*current] % 3 == 0 && tries < 5) {
            tries++;
            *current = (*current + tries) & 63;
            goto again;
        }
        if (tries == 1)
            goto done;
        current = current == &low ? &high : &low;
        g_expensive(&t[*current]);
        low += t[*current];
        const char *end = buffer + 4;
        out[i] = (uint32_t)(end - buffer);
    done:
        out[i] += low + high * 3 + tries + (uint32_t)buffer[1];
    }
}

int main(void)
{
    static uint32_t t[64], keys[130], out[130];
    for (uint32_t i = 0; i < 64; i++)
        t[i] = i * 2654435761u >> 20;
    for (uint32_t i = 0; i < 130; i++)
        keys[i] = i * 40503u;
    find(t, keys, out, 130);
    for (int i = 0; i < 130; i++)
        printf("%u\n", out[i]);
    return 0;
}
