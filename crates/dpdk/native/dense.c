/* Pools for the driver of AF_XDP (net_af_xdp), which gives a whole pool to the kernel.
 *
 * The driver of DPDK 22.11 registers as many bytes with the kernel as the packets of the pool have
 * one after the other, from the first one on. By default, no packet of a pool crosses the end of a
 * page, so the pool has gaps, and its last packets lie beyond those bytes: without huge pages, two
 * fifths of them. The kernel drops each frame that lies there, and never gives it back. */
#include <errno.h>
#include <unistd.h>

#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_log.h>
#include <rte_mbuf.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>

#include "dunlin_dpdk.h"

/* Bytes that the kernel keeps free in front of a received frame (XDP_PACKET_HEADROOM). */
#define KERNEL_HEADROOM 256

/* The room of a packet. The driver leaves the usual headroom free, and then the kernel its own. Less
 * room would lose long frames, more would exceed a page, which is the kernel's limit for all of a
 * packet. */
static uint32_t room_of(uint16_t mtu) {
    uint32_t frame = (uint32_t)mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
    uint32_t room = RTE_PKTMBUF_HEADROOM + KERNEL_HEADROOM + frame;
    /* The kernel takes no packets below 2 KiB. */
    return RTE_ALIGN_CEIL(RTE_MAX(room, 2048U), RTE_CACHE_LINE_SIZE);
}

/* Checks that a packet with all that belongs to it fits into a page. */
static int check_room(uint32_t room, unsigned flags) {
    uint32_t page = (uint32_t)sysconf(_SC_PAGESIZE);
    uint32_t around = rte_mempool_calc_obj_size(sizeof(struct rte_mbuf) + room, flags, NULL) - room;
    if (around + room <= page)
        return 0;
    uint32_t most = RTE_ALIGN_FLOOR(page - around, RTE_CACHE_LINE_SIZE) - RTE_PKTMBUF_HEADROOM -
                    KERNEL_HEADROOM - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN;
    RTE_LOG(ERR, USER1, "net_af_xdp has packets of up to %u bytes; give a shorter mtu=\n", most);
    return -ERANGE;
}

/* Gets memory for the packets, which must be one piece. */
static int populate(struct rte_mempool *pool, struct rte_pktmbuf_pool_private *facts) {
    int got = rte_mempool_set_ops_byname(pool, rte_mbuf_best_mempool_ops(), NULL);
    if (got != 0)
        return got;
    rte_pktmbuf_pool_init(pool, facts);
    got = rte_mempool_populate_default(pool);
    if (got < 0 || pool->nb_mem_chunks == 1)
        return got < 0 ? got : 0;
    RTE_LOG(ERR, USER1, "net_af_xdp needs a pool in one piece of memory; ask for fewer packets=\n");
    return -ENOMEM;
}

struct rte_mempool *dunlin_dpdk_dense_pool(const char *name, uint32_t packets, uint32_t cache,
                                           uint16_t mtu, int node) {
    uint32_t room = room_of(mtu), bytes = (uint32_t)sizeof(struct rte_mbuf) + room;
    /* No addresses for devices, so pages do not matter; and no gaps that spread the packets over
     * the channels of the memory. */
    unsigned flags = RTE_MEMPOOL_F_NO_IOVA_CONTIG | RTE_MEMPOOL_F_NO_SPREAD;
    int error = check_room(room, flags);
    if (error != 0) {
        rte_errno = -error;
        return NULL;
    }
    struct rte_pktmbuf_pool_private facts = {.mbuf_data_room_size = (uint16_t)room};
    struct rte_mempool *pool =
        rte_mempool_create_empty(name, packets, bytes, cache, sizeof facts, node, flags);
    error = pool == NULL ? -rte_errno : populate(pool, &facts);
    if (error == 0) {
        rte_mempool_obj_iter(pool, rte_pktmbuf_init, NULL);
        return pool;
    }
    rte_mempool_free(pool);
    rte_errno = -error;
    return NULL;
}
