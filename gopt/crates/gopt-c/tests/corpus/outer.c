/* Locals of the function: shared by all lanes, or used by each as its own. */
#include <stdio.h>

#include "gopt.h"

static int several(const int *t, const int *in, int *out, int n, int scratch)
{
    int j, found = 0, total = 0, most = 0;
    const int *p;
    struct { int a, b; } pair;
    int base = t[0] + 1;
    (void)pair;
    foreach (i, n) {
        p = &t[in[i] & 63];
        g_expensive(p);
        scratch = *p + base;
        pair.a = 1;
        for (j = 0; j < 3; j++) {
            g_expensive(&t[(scratch + j) & 63]);
            total += t[(scratch + j) & 63];
        }
        if (total & 1)
            found++;
        if (scratch > most)
            most = scratch;
        out[i] = scratch + j;
    }
    for (j = 0; j < 2; j++)
        total += j;
    foreach (i, n / 2) {
        int again = out[i];
        g_expensive(&t[again & 63]);
        out[i] = again + t[again & 63];
    }
    return total + most + (found >= 0);
}

static void old_style(const int *t, int *out, int n)
{
    int i, where;
    foreach (i, n) {
        where = i & 63;
        FPP_EXPENSIVE(&t[where]);
        out[i] += t[where];
    }
    for (i = 0; i < n; i++)
        out[i]++;
}

int main(void)
{
    static int t[64], in[77], out[77];
    for (int i = 0; i < 64; i++)
        t[i] = i * 43 % 67;
    for (int i = 0; i < 77; i++)
        in[i] = i * 5 + 1;
    int result = several(t, in, out, 77, 4);
    old_style(t, out, 77);
    printf("%d\n", result);
    for (int i = 0; i < 77; i++)
        printf("%d\n", out[i]);
    return 0;
}
