/*
 * What a batched look-up function means without gopt: its items run one after the other, and the
 * marks of expensive accesses do nothing. Include this, and the same file compiles with and
 * without the tool.
 *
 *     foreach (i, n) { ... }   runs its block, a lane, once for every i from 0 to n - 1
 *     g_expensive(address);    says that memory at this address will be read and may be far away
 */
#ifndef foreach
#define foreach(i, n) \
    for (__typeof__(0 + (n)) i = 0, gopt_n_of_##i = (n); i < gopt_n_of_##i; i++)
#endif
#ifndef g_expensive
#define g_expensive(address) ((void)(address))
#endif
#ifndef FPP_EXPENSIVE
#define FPP_EXPENSIVE(address) ((void)(address))
#endif
