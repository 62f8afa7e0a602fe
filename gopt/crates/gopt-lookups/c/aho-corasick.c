/* Matching of many patterns in packets (G-Opt 5): packet by packet, and in a batch that is
 * sorted by automaton and length and in which the loops over packets and bytes are interchanged. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Transitions of a state. */
#define BYTES 256

/* Set in a transition if patterns end in the state that it leads to. */
#define ENDS (1u << 31)

/* Most packets in flight. */
#define MAX_WIDTH 64

struct automata {
    const uint32_t *next;
    const uint32_t *starts;
    size_t count;
};

struct packet {
    size_t automaton;
    const uint8_t *payload;
    size_t len;
};

/* A batch is sorted by these fields, in this order. */
struct turn {
    uint32_t automaton;
    uint32_t len;
    uint32_t packet;
};
_Static_assert(sizeof(struct turn) == 12, "as in Rust");

/* A packet on its way through an automaton. */
struct lane {
    uint32_t state;
    size_t packet;
    const uint8_t *payload;
    size_t len;
};

/* Gets the number of a packet, the number of bytes up to the end of a match, and the state in
 * which its patterns end. */
typedef void report(void *context, size_t packet, size_t end, uint32_t state);

void gopt_aho_corasick_plain(const struct automata *automata, const struct packet *packets,
                                    size_t n, report *found, void *context);
void gopt_aho_corasick_batch(const struct automata *automata, size_t width,
                                    struct turn *turns, const struct packet *packets, size_t n,
                                    report *found, void *context);

static inline uint32_t step(const struct automata *automata, uint32_t state, uint8_t byte)
{
    return automata->next[(size_t)state * BYTES + byte];
}

void gopt_aho_corasick_plain(const struct automata *automata, const struct packet *packets,
                                    size_t n, report *found, void *context)
{
    for (size_t i = 0; i < n; i++) {
        if (packets[i].automaton >= automata->count)
            continue;
        uint32_t state = automata->starts[packets[i].automaton];
        for (size_t at = 0; at < packets[i].len; at++) {
            uint32_t entry = step(automata, state, packets[i].payload[at]);
            state = entry & ~ENDS;
            if (__builtin_expect(entry & ENDS, 0))
                found(context, i, at + 1, state);
        }
    }
}

static int compare(const void *left, const void *right)
{
    const struct turn *a = left, *b = right;
    if (a->automaton != b->automaton)
        return a->automaton < b->automaton ? -1 : 1;
    if (a->len != b->len)
        return a->len < b->len ? -1 : 1;
    return a->packet < b->packet ? -1 : a->packet > b->packet;
}

/* Runs all lanes until the first of them has ended. */
static void run(const struct automata *automata, struct lane *lanes, size_t live,
                const struct packet *packets, report *found, void *context)
{
    size_t rounds = SIZE_MAX;
    for (size_t i = 0; i < live; i++)
        rounds = lanes[i].len < rounds ? lanes[i].len : rounds;
    for (size_t at = 0; at < rounds; at++) {
        for (size_t i = 0; i < live; i++) {
            uint32_t entry = step(automata, lanes[i].state, lanes[i].payload[at]);
            lanes[i].state = entry & ~ENDS;
            if (__builtin_expect(entry & ENDS, 0)) {
                size_t done = packets[lanes[i].packet].len - lanes[i].len;
                found(context, lanes[i].packet, done + at + 1, lanes[i].state);
            }
        }
    }
    for (size_t i = 0; i < live; i++) {
        lanes[i].payload += rounds;
        lanes[i].len -= rounds;
    }
}

/* `turns` has a place for each packet. */
void gopt_aho_corasick_batch(const struct automata *automata, size_t width,
                                    struct turn *turns, const struct packet *packets, size_t n,
                                    report *found, void *context)
{
    struct lane lanes[MAX_WIDTH];
    size_t live = 0, next = 0;
    for (size_t i = 0; i < n; i++) {
        turns[i].automaton = packets[i].automaton < UINT32_MAX ? (uint32_t)packets[i].automaton
                                                                : UINT32_MAX;
        turns[i].len = packets[i].len < UINT32_MAX ? (uint32_t)packets[i].len : UINT32_MAX;
        turns[i].packet = (uint32_t)i;
    }
    qsort(turns, n, sizeof *turns, compare);
    for (;;) {
        for (; live < width && next < n; next++) {
            const struct packet *packet = &packets[turns[next].packet];
            if (packet->automaton < automata->count) {
                uint32_t start = automata->starts[packet->automaton];
                lanes[live++] =
                    (struct lane){start, turns[next].packet, packet->payload, packet->len};
            }
        }
        if (!live)
            return;
        run(automata, lanes, live, packets, found, context);
        size_t kept = 0;
        for (size_t i = 0; i < live; i++)
            if (lanes[i].len)
                lanes[kept++] = lanes[i];
        live = kept;
    }
}
