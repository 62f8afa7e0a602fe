/* The structures of `dunlin_dpdk.c`, and the functions of `rules.c` and `dense.c`. */
#include <stdint.h>

#include <rte_ether.h>

/* What a caller asks for, and what it gets; `src/ffi.rs` describes each field. */
struct dunlin_dpdk_wish {
    uint32_t packets, descriptors;
    uint16_t mtu, around, queues;
    uint8_t groups, lends;
};

struct dunlin_dpdk_device {
    void *pool;
    uint64_t bytes_per_second;
    uint32_t room, start, rx_descriptors;
    int32_t bell;
    uint16_t port, mtu, queues;
    struct rte_ether_addr mac;
    uint8_t answers, lends;
};

/* Bytes after those of a packet, which the device reads where they lie. */
struct dunlin_dpdk_tail {
    struct rte_mbuf *handle; /* an empty packet, to which they belong meanwhile; NULL: none */
    uint8_t *bytes, *done;   /* `done` becomes 1 when the device needs them no longer */
    uint32_t length;
};

/* Whether the driver of a device knows rules; the device may refuse each. */
int dunlin_dpdk_has_rules(uint16_t port);

/* Makes a device put the datagrams for an address (in its IPv6 form) and a port of UDP into a queue
 * of their own. NULL if it cannot. */
void *dunlin_dpdk_steer(uint16_t port, uint16_t queue, const uint8_t *address, uint16_t number);

/* Ends such a rule. */
void dunlin_dpdk_unsteer(uint16_t port, void *rule);

/* A pool of packets for the driver of AF_XDP, for IP packets of up to `mtu` bytes. NULL, and
 * `rte_errno`, if there is no memory for it in one piece. */
struct rte_mempool *dunlin_dpdk_dense_pool(const char *name, uint32_t packets, uint32_t cache,
                                           uint16_t mtu, int node);
