/* The part of DPDK that Dunlin uses, as functions over plain arrays: one call for a burst, and none
 * for a packet. `src/ffi.rs` declares the same functions; VERSION changes with any of them.
 *
 * A packet is named by a handle (its mbuf), by the address of its first byte and by its length.
 * Functions that may fail return 0 or a negative error number; the log has the words. */
#define _GNU_SOURCE
#define ALLOW_EXPERIMENTAL_API /* for rte_dev_dma_map */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_eal.h>
#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "dunlin_dpdk.h"

#define VERSION 5
/* The queue of packets to send, and that of received packets for which there is no rule. */
#define QUEUE 0
/* Empty packets of each device that a thread keeps from the pool; DPDK lets it keep half as many more.
 * An endpoint has 64 of a device's packets in use at a time: with a smaller cache, each burst would
 * exchange them for others. */
#define CACHE 128

uint32_t dunlin_dpdk_version(void) { return VERSION; }

static pthread_key_t at_end;
static __thread int is_known __attribute__((tls_model("initial-exec")));

static void forget_thread(void *value __rte_unused) { rte_thread_unregister(); }

/* Starts DPDK on the calling thread, which must not end. DPDK writes its log to the descriptor
 * `words`. It cannot be started twice, not even after a failure. */
int dunlin_dpdk_start(int count, char **arguments, int words) {
    FILE *log = fdopen(words, "w");
    if (log == NULL)
        return -errno;
    setvbuf(log, NULL, _IOLBF, 512);
    rte_openlog_stream(log);
    pthread_key_create(&at_end, forget_thread);
    int outcome = rte_eal_init(count, arguments), error = outcome < 0 ? -rte_errno : 0;
    /* DPDK makes the folder even if it keeps nothing there. Only an empty one is removed. */
    rmdir(rte_eal_get_runtime_dir());
    return outcome < 0 && error == 0 ? -EINVAL : error;
}

/* Gives the calling thread a number, with which it has packets of its own in each pool. There are
 * 128 numbers; further threads take each packet from the pool itself. */
static inline void know_thread(void) {
    if (likely(is_known))
        return;
    is_known = 1;
    if (rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0)
        pthread_setspecific(at_end, &at_end);
}

/* The ports that are open, for ever. */
static uint8_t is_open[RTE_MAX_ETHPORTS];

/* Finds the port of a device, however its name is spelled: `01:00.0` is `0000:01:00.0` and
 * `pci:0000:01:00.0`. */
static int find(const char *name, uint16_t *port) {
    struct rte_dev_iterator ports;
    RTE_ETH_FOREACH_MATCHING_DEV(*port, name, &ports) {
        rte_eth_iterator_cleanup(&ports);
        return 0;
    }
    return -ENODEV;
}

/* Finds the port of a device, which DPDK attaches if it is new, and detaches if it has no port. */
static int attach(const char *name, const char *arguments, uint16_t *port, int *is_new) {
    int error = find(name, port);
    *is_new = error != 0;
    if (error == 0)
        return is_open[*port] ? -EBUSY : 0;
    if ((error = rte_dev_probe(arguments)) != 0)
        return error;
    error = find(name, port);
    struct rte_devargs parsed = {0};
    if (error != 0 && rte_devargs_parse(&parsed, arguments) == 0) {
        rte_eal_hotplug_remove(rte_bus_name(parsed.bus), parsed.name);
        free(parsed.data);
    }
    return error;
}

/* Sets up the queue of packets to send. Many cards report sent packets only for 32 descriptors at
 * once, so they report the last packets before a pause only with the next ones. A call whose data
 * is in one of them would wait for ever. So the card must report each packet; otherwise no data is
 * lent. */
static int set_sending_queue(uint16_t descriptors, unsigned node, struct rte_eth_txconf conf,
                             struct dunlin_dpdk_device *device) {
    if (device->lends && conf.tx_rs_thresh > 1) {
        conf.tx_rs_thresh = 1;
        if (rte_eth_tx_queue_setup(device->port, QUEUE, descriptors, node, &conf) == 0)
            return 0;
        device->lends = 0;
    }
    return rte_eth_tx_queue_setup(device->port, QUEUE, descriptors, node, NULL);
}

/* Starts the queues of a device, with interrupts or without. */
static int start_queues(const struct dunlin_dpdk_wish *wish, const struct rte_eth_dev_info *info,
                        int interrupts, struct dunlin_dpdk_device *device) {
    struct rte_eth_conf conf = {.rxmode.mtu = device->mtu, .intr_conf.rxq = interrupts != 0};
    if (device->lends)
        conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    uint16_t port = device->port, rx = (uint16_t)wish->descriptors, tx = rx;
    int error = rte_eth_dev_configure(port, device->queues, 1, &conf);
    if (error == 0)
        error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
    device->rx_descriptors = rx;
    unsigned node = (unsigned)rte_eth_dev_socket_id(port);
    for (uint16_t queue = 0; error == 0 && queue < device->queues; queue++)
        error = rte_eth_rx_queue_setup(port, queue, rx, node, NULL, device->pool);
    if (error == 0)
        error = set_sending_queue(tx, node, info->default_txconf, device);
    return error == 0 ? rte_eth_dev_start(port) : error;
}

static int is_virtual(const struct rte_eth_dev_info *info) {
    return strcmp(rte_bus_name(rte_dev_bus(info->device)), "vdev") == 0;
}

/* Whether a device can read packets of several pieces in any memory of the process, by the
 * process's addresses. Only one virtual device, vhost, reports what it has sent. */
static int reads_anywhere(const struct rte_eth_dev_info *info) {
    return rte_eal_iova_mode() == RTE_IOVA_VA &&
           (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0 &&
           (!is_virtual(info) || strcmp(info->driver_name, "net_vhost") == 0);
}

/* The bell of a device, or -1 if it has no interrupts. A driver whose interrupts cannot be switched
 * rings for each packet. */
static int make_bell(const struct dunlin_dpdk_device *device) {
    uint16_t port = device->port, queue = 0;
    int bell = epoll_create1(EPOLL_CLOEXEC), error = bell < 0 ? -errno : 0;
    for (; error == 0 && queue < device->queues; queue++) {
        error = rte_eth_dev_rx_intr_ctl_q(port, queue, bell, RTE_INTR_EVENT_ADD, NULL);
        if (error == 0 && (error = rte_eth_dev_rx_intr_enable(port, queue)) == -ENOTSUP)
            error = 0;
        rte_eth_dev_rx_intr_disable(port, queue);
    }
    if (error == 0)
        return bell;
    close(bell);
    return -1;
}

/* Starts the queues of a device, with interrupts if it has them. If it refuses a rule, it
 * gets only one queue for received packets. The rule that is tried is for the discard port. */
static int start_with_rules(const struct dunlin_dpdk_wish *wish,
                            const struct rte_eth_dev_info *info,
                            struct dunlin_dpdk_device *device) {
    static const uint8_t nowhere[16] = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 1};
    int error = start_queues(wish, info, 1, device);
    if (error != 0)
        error = start_queues(wish, info, 0, device);
    if (device->queues == 1)
        return error;
    void *rule = error == 0 ? dunlin_dpdk_steer(device->port, 1, nowhere, 9) : NULL;
    if (rule != NULL) {
        dunlin_dpdk_unsteer(device->port, rule);
        return 0;
    }
    rte_eth_dev_stop(device->port);
    device->queues = 1;
    return start_with_rules(wish, info, device);
}

/* Makes the pool of a device. */
static struct rte_mempool *make_pool(const char *name, const struct dunlin_dpdk_wish *wish,
                                     const struct rte_eth_dev_info *info,
                                     const struct dunlin_dpdk_device *device) {
    int node = rte_eth_dev_socket_id(device->port);
    if (strcmp(info->driver_name, "net_af_xdp") == 0)
        return dunlin_dpdk_dense_pool(name, wish->packets, CACHE, device->mtu, node);
    /* Cards count the room of a packet in steps of up to 1 KiB, or in powers of two from 2 KiB on,
     * and round down: with less room they would split the longest frames. */
    uint32_t room = RTE_PKTMBUF_HEADROOM + rte_align32pow2(RTE_MAX(device->room, 2048U));
    if (room <= UINT16_MAX)
        return rte_pktmbuf_pool_create(name, wish->packets, CACHE, 0, (uint16_t)room, node);
    rte_errno = ERANGE;
    return NULL;
}

static int start_device(const struct dunlin_dpdk_wish *wish, struct dunlin_dpdk_device *device) {
    uint16_t port = device->port;
    struct rte_eth_dev_info info;
    char name[RTE_MEMPOOL_NAMESIZE];
    int error = rte_eth_dev_info_get(port, &info);
    if (error == 0)
        error = rte_eth_dev_get_mtu(port, &device->mtu);
    if (error != 0)
        return error;
    if (wish->mtu != 0)
        device->mtu = wish->mtu;
    device->room = (uint32_t)device->mtu + wish->around;
    device->start = sizeof(struct rte_mbuf) + RTE_PKTMBUF_HEADROOM;
    device->lends = wish->lends && reads_anywhere(&info);
    if (device->mtu < info.min_mtu || device->mtu > info.max_mtu)
        return -ERANGE;
    snprintf(name, sizeof name, "dunlin-%u", port);
    device->pool = make_pool(name, wish, &info, device);
    if (device->pool == NULL)
        return -rte_errno;
    device->queues = dunlin_dpdk_has_rules(port) ? RTE_MIN(wish->queues, info.max_rx_queues) : 1;
    error = start_with_rules(wish, &info, device);
    struct rte_eth_rxq_info queue;
    /* Drivers that do not know whether they split are virtual ones, which do not. */
    if (error == 0 && rte_eth_rx_queue_info_get(port, QUEUE, &queue) == 0 && queue.scattered_rx) {
        RTE_LOG(ERR, USER1, "the device splits frames as long as its MTU; give a shorter mtu=\n");
        error = -EMSGSIZE;
    }
    if (error != 0)
        return error;
    error = rte_eth_macaddr_get(port, &device->mac);
    /* A ring has no address, but neighbours need one. */
    if (rte_is_zero_ether_addr(&device->mac))
        rte_eth_random_addr(device->mac.addr_bytes);
    /* Not every device can be asked for this, and virtual ones have these packets anyway. */
    if (wish->groups)
        rte_eth_allmulticast_enable(port);
    return error;
}

/* Releases a device that cannot be started, and detaches it if this call attached it. One that runs
 * is never closed: the thread of DPDK that handles a peer's farewell (memif) may be using it. */
static void abandon(const struct dunlin_dpdk_device *device, int is_new) {
    struct rte_eth_dev_info info = {0};
    rte_eth_dev_info_get(device->port, &info);
    rte_eth_dev_stop(device->port);
    rte_eth_dev_close(device->port);
    if (is_new && info.device != NULL)
        rte_dev_remove(info.device);
    rte_mempool_free(device->pool);
}

/* Opens the device of this name with these arguments, the name among them, as `--vdev` and `-a` of
 * DPDK do. `device` is zeroed. The caller opens one device at a time; -EBUSY if it is open. */
int dunlin_dpdk_open(const char *name, const char *arguments, const struct dunlin_dpdk_wish *wish,
                     struct dunlin_dpdk_device *device) {
    know_thread();
    int is_new, error = attach(name, arguments, &device->port, &is_new);
    if (error != 0)
        return error;
    error = start_device(wish, device);
    if (error != 0) {
        abandon(device, is_new);
        return error;
    }
    is_open[device->port] = 1;
    struct rte_eth_link link = {0};
    /* What is sent before the link is up may be lost. A memif client's takes some milliseconds. */
    for (int turn = 0; turn < 20 && !link.link_status; turn++) {
        usleep(turn * 500);
        rte_eth_link_get_nowait(device->port, &link);
    }
    if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
        device->bytes_per_second = (uint64_t)link.link_speed * 125000;
    device->answers = rte_eth_tx_done_cleanup(device->port, QUEUE, 0) >= 0;
    device->lends &= device->answers;
    device->bell = make_bell(device);
    return 0;
}

/* Clears the bell. If `on`, it rings for the next packet; otherwise it no longer rings. */
void dunlin_dpdk_listen(uint16_t port, uint16_t queues, int bell, int on) {
    know_thread();
    for (uint16_t queue = 0; queue < queues; queue++)
        rte_eth_dev_rx_intr_disable(port, queue);
    struct rte_epoll_event rung;
    while (rte_epoll_wait_interruptible(bell, &rung, 1, 0) > 0)
        ;
    for (uint16_t queue = 0; on && queue < queues; queue++)
        rte_eth_dev_rx_intr_enable(port, queue);
}

/* Where a packet begins, its holders, its pieces and its port. */
static inline uint64_t shape_of(const struct rte_mbuf *packet) {
    return *(const uint64_t *)RTE_PTR_ADD(packet, offsetof(struct rte_mbuf, rearm_data));
}

/* Gets up to `count` packets of a port (the low half of `from`) and its queue. If all are of one
 * pool, in one piece, not shared, and equally far from their handles, that becomes `start`.
 * Otherwise it becomes 0, and `bytes` gets the addresses. Several pieces: the length is 0. */
uint32_t dunlin_dpdk_receive(uint32_t from, struct rte_mbuf **packets, uint8_t **bytes,
                             uint32_t *lengths, uint32_t count, uint32_t *start) {
    know_thread();
    uint32_t got = rte_eth_rx_burst((uint16_t)from, from >> 16, packets, (uint16_t)count);
    if (got == 0)
        return 0;
    const struct rte_mbuf *first = packets[0];
    uint64_t shape = shape_of(first), flags = 0;
    uintptr_t pool = (uintptr_t)first->pool, differs = first->refcnt != 1 || first->nb_segs != 1;
    uint32_t distance = (uint32_t)(rte_pktmbuf_mtod(first, uintptr_t) - (uintptr_t)first);
    for (uint32_t i = 0; i < got; i++) {
        const struct rte_mbuf *packet = packets[i];
        differs |= (shape_of(packet) ^ shape) | ((uintptr_t)packet->pool ^ pool);
        flags |= packet->ol_flags;
        lengths[i] = packet->data_len;
        rte_prefetch0((const uint8_t *)packet + distance);
    }
    *start = differs || (flags & (RTE_MBUF_F_INDIRECT | RTE_MBUF_F_EXTERNAL)) ? 0 : distance;
    for (uint32_t i = 0; *start == 0 && i < got; i++) {
        bytes[i] = rte_pktmbuf_mtod(packets[i], uint8_t *);
        lengths[i] = packets[i]->nb_segs == 1 ? lengths[i] : 0;
    }
    return got;
}

/* Gets `count` empty packets from a pool, or none. */
uint32_t dunlin_dpdk_take(void *pool, void **handles, uint32_t count) {
    know_thread();
    return rte_mempool_get_bulk(pool, handles, count) != 0 ? 0 : count;
}

/* Called when the device no longer needs these bytes. */
static void give_back(void *bytes __rte_unused, void *done) {
    __atomic_store_n((uint8_t *)done, 1, __ATOMIC_RELEASE);
}

/* Adds a tail to a packet. DPDK keeps its data about the tail in the tail's empty packet. */
static void append(struct rte_mbuf *packet, const struct dunlin_dpdk_tail *tail) {
    struct rte_mbuf *rest = tail->handle;
    struct rte_mbuf_ext_shared_info *shared = (void *)(rest + 1);
    uint16_t length = (uint16_t)tail->length;
    *shared = (struct rte_mbuf_ext_shared_info){.free_cb = give_back, .fcb_opaque = tail->done};
    rte_mbuf_ext_refcnt_set(shared, 1);
    rte_pktmbuf_reset(rest);
    rte_pktmbuf_attach_extbuf(rest, tail->bytes, (uintptr_t)tail->bytes, length, shared);
    rest->data_len = length;
    packet->next = rest;
    packet->nb_segs = 2;
    packet->pkt_len += tail->length;
}

/* Sends packets from `dunlin_dpdk_take`, which are as their last owner has left them, and returns
 * the number of those that the device has taken over. `tails` has one for each packet, or is
 * NULL. Packets that stay keep their tails. */
uint32_t dunlin_dpdk_send(uint16_t port, struct rte_mbuf **packets, const uint32_t *lengths,
                          const struct dunlin_dpdk_tail *tails, uint32_t count) {
    know_thread();
    for (uint32_t i = 0; i < count; i++) {
        struct rte_mbuf *packet = packets[i];
        packet->data_off = RTE_PKTMBUF_HEADROOM;
        packet->refcnt = 1;
        packet->nb_segs = 1;
        packet->port = RTE_MBUF_PORT_INVALID;
        packet->ol_flags = 0;
        packet->pkt_len = lengths[i];
        packet->data_len = (uint16_t)lengths[i];
    }
    for (uint32_t i = 0; tails != NULL && i < count; i++)
        if (tails[i].handle != NULL)
            append(packets[i], &tails[i]);
    return rte_eth_tx_burst(port, QUEUE, packets, (uint16_t)count);
}

/* Lets a device read the pages of some memory, or ends that. */
int dunlin_dpdk_share(uint16_t port, void *memory, size_t bytes, int on) {
    struct rte_eth_dev_info info;
    int error = rte_eth_dev_info_get(port, &info);
    if (error != 0 || is_virtual(&info))
        return error; /* virtual devices read by addresses of the process */
    size_t page = (size_t)getpagesize();
    bytes = RTE_ALIGN_CEIL(bytes, page); /* DPDK refuses a part of a page */
    if (on && rte_extmem_register(memory, bytes, NULL, 0, page) != 0)
        return -rte_errno;
    if (on && rte_dev_dma_map(info.device, memory, (uintptr_t)memory, bytes) == 0)
        return 0;
    error = on ? -rte_errno : rte_dev_dma_unmap(info.device, memory, (uintptr_t)memory, bytes);
    rte_extmem_unregister(memory, bytes);
    return error;
}

/* Gives packets back to their pools: together if they are not `mixed`. */
void dunlin_dpdk_free(struct rte_mbuf **packets, uint32_t count, uint32_t mixed) {
    know_thread();
    if (!mixed && count > 0)
        rte_mempool_put_bulk(packets[0]->pool, (void **)packets, count);
    for (uint32_t i = 0; mixed && i < count; i++)
        rte_pktmbuf_free(packets[i]);
}

/* Makes the device give back packets that it has sent. */
void dunlin_dpdk_ask(uint16_t port) {
    know_thread();
    rte_eth_tx_done_cleanup(port, QUEUE, 0);
}
