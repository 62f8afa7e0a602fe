/* One name, several variables. */
#include <stdio.h>

#include "gopt.h"

static int x = 1000;

static void shadow(const int *t, int *out, int n, int y)
{
    int z = y + 1;
    foreach (i, n) {
        int before = x + y;
        int x = t[i & 31], sum = before;
        {
            int x = sum + 1;
            g_expensive(&t[x & 31]);
            sum += x;
            {
                long x = 3, y = t[sum & 31];
                g_expensive(&t[y & 31]);
                sum += (int)(x + y) + z;
                for (int x = 0; x < 3; x++) {
                    int i = x * 2;
                    g_expensive(&t[i]);
                    sum += i + t[i];
                }
            }
            sum ^= x;
        }
        struct { int x, sum; } s = {.x = x, .sum = 1};
        g_expensive(&t[s.x & 31]);
        s.sum += s.x;
        out[i] = sum + x + s.sum + y;
        goto x;
    x:
        out[i]++;
    }
    out[n] = x + y + z;
}

int main(void)
{
    static int t[32], out[101];
    for (int i = 0; i < 32; i++)
        t[i] = i * 13 % 32;
    shadow(t, out, 100, 7);
    for (int i = 0; i < 101; i++)
        printf("%d\n", out[i]);
    return 0;
}
