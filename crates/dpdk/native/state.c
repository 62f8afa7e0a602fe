/* Questions about the state of a device and of its pool, which no burst asks. */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mempool.h>

/* Packets that the device dropped: received ones for want of a descriptor, for want of an empty
 * packet, and with faults; and those that it could not send. */
void dunlin_dpdk_drops(uint16_t port, uint64_t drops[4]) {
    struct rte_eth_stats stats = {0};
    rte_eth_stats_get(port, &stats);
    memcpy(drops, (uint64_t[]){stats.imissed, stats.rx_nombuf, stats.ierrors, stats.oerrors}, 32);
}

/* Whether the link is up. */
int dunlin_dpdk_is_up(uint16_t port) {
    struct rte_eth_link link = {0};
    return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status;
}

/* Empty packets in a pool, for tests. */
uint32_t dunlin_dpdk_empty(const void *pool) { return rte_mempool_avail_count(pool); }
