/*
 * Runs every form of one look-up in one shape over a table from a file, for sanitizers: each
 * array of the table has its own allocation of just its size, so reads outside of it are found.
 * `driver IN OUT`; compiled with UNIT, the translation unit of the look-up, and FORMS, its list
 * of forms. Ends with 0 if all forms agree, and then has written the results to OUT.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include UNIT

/* Widths of the forms, in the order of the list; the width of `plain` has no effect. */
static const size_t widths[] = {WIDTHS};

static void *allocate(size_t len)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 128, len))
        exit(3);
    return memory;
}

static void read_into(FILE *file, void *place, size_t len)
{
    if (fread(place, 1, len, file) != len)
        exit(4);
}

static uint64_t read_number(FILE *file)
{
    uint64_t number;
    read_into(file, &number, sizeof number);
    return number;
}

/* Runs a form on the first `len` items, in allocations of their own, and compares with
 * `expected`. */
static void check(size_t form, size_t width, const struct table *table, const item_type *items,
                  size_t len, const out_type *expected)
{
    item_type *given = allocate(len * sizeof *given);
    out_type *found = allocate(len * sizeof *found);
    if (len)
        memcpy(given, items, len * sizeof *given);
    if (len)
        memset(found, 0, len * sizeof *found);
    FORMS[form](table, width, given, found, len);
    if (len && memcmp(found, expected, len * sizeof *found)) {
        printf("form %zu, width %zu, %zu items: differs from plain\n", form, width, len);
        exit(1);
    }
    free(given);
    free(found);
}

int main(int argc, char **argv)
{
    FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL;
    if (!in)
        return 2;
    struct table table;
    if (read_number(in) != sizeof table)
        return 5;
    read_into(in, &table, sizeof table);
    uint64_t arrays = read_number(in);
    for (uint64_t i = 0; i < arrays; i++) {
        uint64_t place = read_number(in), len = read_number(in);
        void *array = allocate(len);
        read_into(in, array, len);
        memcpy((char *)&table + place, &array, sizeof array);
    }
    size_t n = read_number(in);
    item_type *items = allocate(n * sizeof *items);
    out_type *expected = allocate(n * sizeof *expected);
    read_into(in, items, n * sizeof *items);
    fclose(in);

    memset(expected, 0, n * sizeof *expected);
    FORMS[0](&table, 1, items, expected, n);
    for (size_t at = 0; at < sizeof widths / sizeof *widths; at++) {
        const size_t lens[] = {0, 1, widths[at], widths[at] + 1, n};
        for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
            check(1, widths[at], &table, items, lens[i], expected);
            check(2 + at, widths[at], &table, items, lens[i], expected);
        }
    }
    FILE *out = fopen(argv[2], "wb");
    if (!out || fwrite(expected, sizeof *expected, n, out) != n || fclose(out))
        return 6;
    return 0;
}
