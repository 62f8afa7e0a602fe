/* Pointer chasing (G-Opt 3.3): a chain of dependent accesses for each item. */
#include <stdio.h>
#include <stdlib.h>

#include "gopt.h"

#define SIZE 4096

static unsigned next_of[SIZE];

static void chase(const unsigned *next, const unsigned *start, unsigned *end, int n, int depth)
{
    foreach (i, n) {
        unsigned at = start[i]; // where this item is
        for (int d = 0; d < depth; d++) {
            g_expensive(&next[at]);
            at = next[at];
        }
        end[i] = at;
    }
}

int main(void)
{
    static unsigned start[200], end[200];
    for (unsigned i = 0; i < SIZE; i++)
        next_of[i] = (i * 2654435761u + 12345u) % SIZE;
    for (int n = 0; n < 200; n += 7) {
        for (int i = 0; i < n; i++)
            start[i] = (unsigned)(i * 37 + n) % SIZE;
        chase(next_of, start, end, n, n % 13);
        unsigned sum = 0;
        for (int i = 0; i < n; i++)
            sum = sum * 31 + end[i];
        printf("%d %u\n", n, sum);
    }
    return 3;
}
