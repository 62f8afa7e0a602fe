/* Macros, comments and # lines stay where they are. foreach (i, n) { in a comment } */
#include <stdio.h>

#include "gopt.h"

#define SLOTS 4
#define MASK(x) ((x) & 63)
#define LOAD(table, at) ((table)[MASK(at)])
#define SET(variable, value) ((variable) = (value))
#define READ_INTO(variable, table, at) do { (variable) = LOAD(table, at); } while (0)
#define BUMP(variable) (*(&(variable)) += 1)
#define WITH_EXTRA

#if 0
this is no C at all { foreach (
#endif

static const char *const text = "foreach (i, n) { g_expensive(x); }"; // and '"' in a comment

static void look_up(const int *t, const int *in, int *out, int n)
{
    foreach (i, n) {
        int key = in[i]; /* a comment // with another in it */
        int sum = 0;
#ifdef WITH_EXTRA
        int extra = key * 3;
#else
        int missing = undeclared_name + key;
#endif
#if SLOTS > 3
        long choice = 7;
#else
        short choice = 8;
#endif
        int slots[SLOTS] = {
#ifdef WITH_EXTRA
            1,
#endif
            2, key };

        g_expensive(&LOAD(t, key)); // here it waits
#ifdef WITH_EXTRA
        g_expensive(&t[MASK(extra)]);
        sum += extra + LOAD(t, extra);
#else
        g_expensive(&t[missing]);
#endif
        int got;
        READ_INTO(got, t, key);
        g_expensive(&t[MASK(got)]);
        SET(sum, sum + got);
        BUMP(sum);
#ifdef NEVER
        continue;
#endif
        key = 5;
#ifdef NEVER
        key = 6;
#endif
        g_expensive(&t[MASK(key)]);
#ifndef NEVER
        out[i] = sum + key + slots[2] + (int)choice \
            + LOAD(t, key);
#endif
    }
}

int main(void)
{
    static int t[64], in[50], out[50];
    for (int i = 0; i < 64; i++)
        t[i] = i * 29 % 64;
    for (int i = 0; i < 50; i++)
        in[i] = i * 11;
    look_up(t, in, out, 50);
    printf("%s\n", text);
    for (int i = 0; i < 50; i++)
        printf("%d\n", out[i]);
    return 0;
}
