/* A lane that ends the loop or the function: the first item that does decides. */
#include <stdio.h>

#include "gopt.h"

struct node {
    int key;
    struct node *next;
};

static struct node nodes[100];

static struct node *first(struct node *const *heads, int n, int key)
{
    foreach (i, n) {
        struct node *node = heads[i];
        while (node) {
            g_expensive(node);
            if (node->key == key)
                return node;
            node = node->next;
        }
    }
    return NULL;
}

static const int *first_over(const int *t, const int *at, unsigned n, int limit)
{
    foreach (i, n) {
        for (int hop = 0, where = at[i]; hop < 1 + (int)i % 5; hop++) {
            g_expensive(&t[where]);
            if (t[where] > limit) {
                return &t[where];
            }
            where = (where + t[where]) % 100;
        }
    }
    return 0;
}

static int up_to(const int *t, const int *at, int *out, int n)
{
    int stopped = -1;
    foreach (i, n) {
        int where = at[i];
        for (int hop = 0; hop < i % 4; hop++) {
            g_expensive(&t[where]);
            where = (where * 3 + t[where]) % 100;
            if (hop == 2)
                break;
        }
        if (where == 55) {
            stopped = i;
            break;
        }
        out[i] = where;
    }
    return stopped;
}

static void check(const int *t, const int *at, int *out, int n)
{
    foreach (i, n) {
        if (at[i] == 33)
            return;
        g_expensive(&t[at[i]]);
        if (t[at[i]] == 44)
            return;
    }
    out[0] = 1;
}

int main(void)
{
    static int t[100], at[60], out[60];
    static struct node *heads[40];
    for (int i = 0; i < 100; i++) {
        t[i] = i * 37 % 101;
        nodes[i].key = i * 7 % 100;
        nodes[i].next = i % 3 ? &nodes[i - 1] : NULL;
    }
    for (int i = 0; i < 40; i++)
        heads[i] = &nodes[(i * 11) % 100];
    for (int i = 0; i < 60; i++)
        at[i] = i * 41 % 100;
    for (int key = 0; key < 110; key++) {
        struct node *found = first(heads, 40, key);
        printf("%d ", found ? (int)(found - nodes) : -1);
        const int *over = first_over(t, at, 60, key);
        printf("%d ", over ? (int)(over - t) : -1);
        int stopped = up_to(t, at, out, key % 61);
        printf("%d", stopped);
        for (int i = 0; i < (stopped < 0 ? key % 61 : stopped); i++)
            printf(" %d", out[i]);
        out[0] = 0;
        check(t, at, out, key % 61);
        printf(" %d\n", out[0]);
    }
    return 0;
}
