/* Every kind of statement around a switch of lanes. */
#include <stdio.h>

#include "gopt.h"

static int table[256];

static int twice(int x)
{
    return 2 * x;
}

static void walk(const int *t, const int *in, int *out, size_t n)
{
    foreach (i, n) {
        int value = in[i], sum = 0;
        if (value < 0)
            continue;
        if (value % 7 == 0) g_expensive(&t[value & 255]);
        else if (value % 7 == 1)
            sum += 5;
        else {
            g_expensive(&t[(value * 3) & 255]);
            sum += t[(value * 3) & 255];
        }
        while (value > 3) {
            g_expensive(&t[value & 255]);
            if ((t[value & 255] & 3) == 1) {
                value -= 2;
                continue;
            }
            if (t[value & 255] == 77)
                break;
            value /= 2;
            sum ^= twice(t[value & 255]);
        }
        int rounds = 0;
        do {
            rounds++;
            FPP_EXPENSIVE(&t[(sum ^ rounds) & 255]);
            if (rounds == 2)
                continue;
            sum += t[(sum ^ rounds) & 255] & 15;
        } while (rounds < 4);
        switch (in[i] % 5) {
        case 0:
            g_expensive(&t[sum & 255]);
            sum += 1;
            /* fall through */
        case 1:
            sum += t[sum & 255];
            break;
        case 2: {
            int inner = sum & 255;
            g_expensive(&t[inner]);
            sum -= t[inner];
            if (sum & 1)
                break;
            for (;;) {
                g_expensive(&t[(inner + 1) & 255]);
                if (inner++ > 200)
                    break;
                sum++;
            }
            break;
        }
        case 3:
            if (sum & 2)
                continue;
            sum = 0;
            break;
        default:
            for (int j = 0, k = 3; j < k; j++, sum += j) {
                if (j == 1)
                    continue;
                g_expensive(&t[(sum + j) & 255]);
                sum += t[(sum + j) & 255];
            }
        }
        // Only one of these lives across the access.
        for (int seed = sum, j = seed & 1; j < 3; j++)
            g_expensive(&t[j]);
        out[i] = sum;
    }
}

int main(void)
{
    static int in[300], out[300];
    for (int i = 0; i < 256; i++)
        table[i] = (i * 97 + 13) % 251;
    for (int i = 0; i < 300; i++)
        in[i] = (i * 1009) % 4001 - 50;
    walk(table, in, out, 300);
    for (int i = 0; i < 300; i++)
        printf("%d ", out[i]);
    return 0;
}
