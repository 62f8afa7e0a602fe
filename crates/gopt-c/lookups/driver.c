/*
 * Fills every table, asks all three forms the same questions, and says whether they gave the same
 * answers. `driver BITS` prints look-ups per second for tables of 2^BITS entries as well.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "lookups.h"

#define BATCH 4096

static uint64_t state = 88172645463325252ull;

static uint64_t draw(void)
{
    return mix(state += 0x9e3779b97f4a7c15ull);
}

static void *table_of(size_t bytes)
{
    bytes = (bytes + (1u << 21) - 1) >> 21 << 21;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("mmap");
        exit(2);
    }
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static int failed, timed, rounds = 3;

/* Fresh questions in every round; the lengths also try batches that are no multiple of anything. */
#define COMPARE(name, type, question, answer, ...)                                         \
    do {                                                                                          \
        static type asked[BATCH];                                                                 \
        static answer expected[BATCH], got[BATCH];                                                \
        double took[3] = {0, 0, 0};                                                               \
        uint64_t sum = 0, items = 0;                                                              \
        for (int round = 0; round < rounds; round++) {                                            \
            size_t n = timed ? BATCH : (size_t)(round * 37 + 1);                                  \
            for (int form = 0; form < 3; form++) {                                                \
                for (size_t i = 0; i < n && (timed || form == 0); i++)                            \
                    asked[i] = (type)(question);                                                  \
                answer *into = form == 0 ? expected : got;                                        \
                double begin = now();                                                             \
                (form == 0 ? name##_plain : form == 1 ? name##_gopt : name##_hand)(               \
                    __VA_ARGS__, asked, into, n);                                                 \
                took[form] += now() - begin;                                                      \
                if (!timed && memcmp(expected, into, n * sizeof *into))                           \
                    failed = printf(#name ": form %d differs\n", form);                           \
                for (size_t i = 0; i < n; i++)                                                    \
                    sum = sum * 31 + into[i];                                                     \
            }                                                                                     \
            items += n;                                                                           \
        }                                                                                         \
        if (timed)                                                                                \
            printf("%-8s plain %7.2f gopt %7.2f hand %7.2f M/s; gopt/plain %.2f gopt/hand %.2f\n",  \
                   #name, (double)items / took[0] / 1e6, (double)items / took[1] / 1e6,           \
                   (double)items / took[2] / 1e6, took[0] / took[1], took[2] / took[1]);          \
        else                                                                                      \
            printf("%s %llu\n", #name, (unsigned long long)sum);                                  \
    } while (0)

int main(int argc, char **argv)
{
    timed = argc > 1;
    int bits = timed ? atoi(argv[1]) : 12;
    if (bits < 8 || bits > 32) {
        fprintf(stderr, "BITS must be 8 to 32\n");
        return 2;
    }
    rounds = timed ? 400 : 40;
    size_t size = (size_t)1 << bits;

    uint32_t *next = table_of(size * sizeof *next);
    for (size_t i = 0; i < size; i++)
        next[i] = (uint32_t)(draw() & (size - 1));
    int depth = timed ? 100 : 7;
    COMPARE(chase, uint32_t, draw() & (size - 1), uint32_t, next, depth);

    struct cuckoo cuckoo = {table_of(size / 8 * sizeof *cuckoo.buckets), size / 8 - 1};
    for (size_t key = 1; key < size * 3 / 4; key++)
        cuckoo_insert(&cuckoo, key, key * 3);
    COMPARE(cuckoo, uint64_t, 1 + draw() % size, uint64_t, &cuckoo);

    struct ipv4 ipv4 = {table_of((size_t)1 << 25), table_of((size_t)1 << 24)};
    for (size_t i = 0; i < 1u << 24; i++)
        ipv4.first[i] = (uint16_t)(draw() % 8 ? draw() & 0x7fff : IPV4_LONG | (draw() & 0x7fff));
    for (size_t i = 0; i < 1u << 23; i++)
        ipv4.second[i] = (uint16_t)(draw() & 0x7fff);
    COMPARE(ipv4, uint32_t, draw(), uint16_t, &ipv4);

    struct mica mica = {table_of(size / 4 * sizeof *mica.buckets),
                        table_of(size * sizeof *mica.log), size / 4 - 1, 0};
    for (size_t key = 1; key < size; key++)
        mica_insert(&mica, key, key * 5);
    COMPARE(mica, uint64_t, 1 + draw() % (size * 2), uint64_t, &mica);
    return failed != 0;
}
