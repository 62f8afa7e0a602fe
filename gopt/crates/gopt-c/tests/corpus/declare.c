/* Declarations of every form, live across a switch. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gopt.h"

typedef struct point {
    int x, y;
} point_t;

struct pair {
    point_t from;
    struct point to;
    const char *name;
};

typedef int (*function_t)(int);

static int add_one(int x)
{
    return x + 1;
}

static int negate(int x)
{
    return -x;
}

static void forms(const int *t, const int *in, long *out, unsigned n)
{
    foreach (i, n) {
        const int key = in[i];
        static int calls;
        static const int weights[3] = {3, 5, 7};
        int a = key, *p = &a, both[2] = {key, key + 1}, c;
        unsigned char text[] = "lane";
        int sizes[] = {
            1, key, // the second depends on the item
            3,
        };
        point_t zero = {0};
        struct point named = {.y = key, .x = 2};
        struct pair pair = {{1, key}, {.x = 3, .y = 4}, "pair"};
        struct pair copy = pair;
        function_t function = key & 1 ? add_one : negate;
        int (*plain)(int) = negate;
        int (*rows)[2] = &both;
        const char *const word = "const";
        char *const end = (char *)text + 1;
        int grid[2][3] = {{1, 2, key}, {4, 5, 6}};
        register long total = 0;
        volatile int seen = 1;
        unsigned long long int wide = 1ull << (key & 31);
        __typeof__(key) also = key * 2;
        struct {
            int low;
            union { int i; unsigned u; } high;
        } anonymous = {key, {.u = 9}};
        enum color { RED, GREEN = 5, BLUE } color = key & 1 ? GREEN : BLUE;
        typedef struct { short s; } small_t;
        small_t small = {.s = (short)key};
        double half = key / 2.0;
        int unused __attribute__((unused));

        g_expensive(&t[key & 63]);

        c = t[key & 63];
        calls++;
        *p += c;
        (*rows)[1] += a;
        text[0] ^= (unsigned char)c;
        sizes[1] += weights[key % 3];
        zero.x += named.x + pair.to.y + copy.from.y;
        g_expensive(&t[(key + 1) & 63]);
        total += a + both[1] + text[0] + (long)sizeof text + sizes[1] + (long)sizeof(sizes);
        total += zero.x + named.y + function(key) + plain(c) + word[1] + *end + grid[0][2];
        total += seen + (long)(wide & 1023) + also + anonymous.low + (int)anonymous.high.u + color;
        total += small.s + (long)half + (long)strlen(pair.name) + (calls > 0);
        out[i] = total + RED;
    }
}

static void in_blocks(const int *t, int *out, uint8_t n)
{
    foreach (i, n)
    { // the brace in a line of its own
        int sum = 0;
        for (int j = 0, *p = &sum, k[2] = {3, 4}; j < 4; ++j) {
            struct point step = {j, 1};
            g_expensive(t + ((i + j) & 63));
            *p += step.x + t[(i + j) & 63] + k[j & 1];
            int late = sum;
            g_expensive(t + (late & 63));
            sum += (late) & 3;
            sum -= (late) - 1;
        }
        out[i] = sum;
    }
}

int main(void)
{
    static int t[64], in[90], sums[90];
    static long out[90];
    for (int i = 0; i < 64; i++)
        t[i] = i * 31 % 61;
    for (int i = 0; i < 90; i++)
        in[i] = i * 7;
    forms(t, in, out, 90);
    in_blocks(t, sums, 90);
    for (int i = 0; i < 90; i++)
        printf("%ld %d\n", out[i], sums[i]);
    return 0;
}
