/* The part of DPDK that Dunlin uses, as functions over plain arrays: one call for a burst, and none
 * for a packet. `src/ffi.rs` declares the same functions; VERSION changes with any of them.
 *
 * A packet is named by a handle (its mbuf), by the address of its first byte and by its length.
 * Functions that may fail return 0 or a negative error number; `dunlin_dpdk_log` has the words. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_epoll.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#define VERSION 2
#define QUEUE 0
/* Packets of each device that one thread keeps, so that it seldom goes to the pool: up to half as
 * many again. */
#define CACHE 64
#define LOG_BYTES 4096

/* What a caller asks for, and what it gets. */
struct dunlin_dpdk_wish {
    uint32_t packets;     /* in the pool of the device */
    uint32_t descriptors; /* of each of its queues */
    uint16_t mtu;         /* bytes of the longest IP packet; 0: as the device has it */
    uint16_t around;      /* bytes of Ethernet around it */
    uint8_t groups;       /* whether packets to groups of Ethernet are wanted */
};

struct dunlin_dpdk_device {
    void *pool;
    uint64_t bytes_per_second; /* of the link; 0 if the device does not know */
    uint32_t room;             /* bytes of the longest frame */
    uint32_t rx_descriptors;
    int32_t bell; /* becomes readable when a packet comes during `dunlin_dpdk_listen`; -1: none */
    uint16_t port;
    uint16_t mtu;
    uint8_t mac[6];
    uint8_t answers; /* whether `dunlin_dpdk_ask` has an effect */
};

/* The last words of DPDK. */
static char words[LOG_BYTES];
static size_t spoken;
static pthread_mutex_t speaking = PTHREAD_MUTEX_INITIALIZER;

static ssize_t hear(void *cookie, const char *text, size_t length) {
    (void)cookie;
    pthread_mutex_lock(&speaking);
    for (size_t i = 0; i < length; i++)
        words[spoken++ % LOG_BYTES] = text[i];
    pthread_mutex_unlock(&speaking);
    return (ssize_t)length;
}

uint32_t dunlin_dpdk_version(void) { return VERSION; }

/* Copies the last words of DPDK, at most `room` bytes, and returns their number. */
size_t dunlin_dpdk_log(char *to, size_t room) {
    pthread_mutex_lock(&speaking);
    size_t length = RTE_MIN(RTE_MIN(spoken, (size_t)LOG_BYTES), room);
    for (size_t i = 0; i < length; i++)
        to[i] = words[(spoken - length + i) % LOG_BYTES];
    pthread_mutex_unlock(&speaking);
    return length;
}

/* Starts DPDK on the calling thread, which must not end. DPDK cannot be started twice, not even
 * after a failure. */
int dunlin_dpdk_start(int count, char **arguments) {
    cookie_io_functions_t functions = {.write = hear};
    FILE *log = fopencookie(NULL, "w", functions);
    if (log == NULL)
        return -errno;
    setvbuf(log, NULL, _IOLBF, 512);
    rte_openlog_stream(log);
    int outcome = rte_eal_init(count, arguments);
    int error = outcome < 0 ? -rte_errno : 0;
    /* DPDK makes the folder even if it keeps nothing there. Only an empty one is removed. */
    if (rte_eal_get_runtime_dir() != NULL)
        rmdir(rte_eal_get_runtime_dir());
    return outcome < 0 && error == 0 ? -EINVAL : error;
}

static pthread_key_t at_end;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static __thread int is_known;

static void forget_thread(void *value) {
    (void)value;
    rte_thread_unregister();
}

static void make_key(void) { pthread_key_create(&at_end, forget_thread); }

/* Gives the calling thread a number, by which it has packets of its own in each pool. There are
 * 128 numbers; threads beyond them share. */
static inline void know_thread(void) {
    if (likely(is_known))
        return;
    is_known = 1;
    if (rte_lcore_id() != LCORE_ID_ANY || rte_thread_register() != 0)
        return;
    pthread_once(&once, make_key);
    pthread_setspecific(at_end, &at_end);
}

/* The ports that `dunlin_dpdk_open` has opened, which are never closed. */
static uint8_t is_open[RTE_MAX_ETHPORTS];

/* Finds the port of a device, however its name is spelled: `01:00.0` is `0000:01:00.0` and
 * `pci:0000:01:00.0`. */
static int find(const char *arguments, uint16_t *port) {
    char name[RTE_DEV_NAME_MAX_LEN];
    struct rte_dev_iterator ports;
    size_t length = strcspn(arguments, ",");
    if (length >= sizeof name)
        return -ENAMETOOLONG;
    memcpy(name, arguments, length);
    name[length] = 0;
    if (rte_eth_iterator_init(&ports, name) != 0)
        return -ENODEV;
    *port = rte_eth_iterator_next(&ports);
    rte_eth_iterator_cleanup(&ports);
    return *port < RTE_MAX_ETHPORTS ? 0 : -ENODEV;
}

/* Finds the port of a device, which DPDK attaches if it is new. One without a port is detached
 * again. */
static int attach(const char *arguments, uint16_t *port, int *is_new) {
    int error = find(arguments, port);
    *is_new = error != 0;
    if (error == 0)
        return is_open[*port] ? -EBUSY : 0;
    error = rte_dev_probe(arguments);
    if (error != 0)
        return error;
    error = find(arguments, port);
    struct rte_devargs parsed = {0};
    if (error != 0 && rte_devargs_parse(&parsed, arguments) == 0) {
        rte_eal_hotplug_remove(rte_bus_name(parsed.bus), parsed.name);
        free(parsed.data);
    }
    return error;
}

/* The wanted MTU if the device can have it, or its own if that is 0. */
static int choose_mtu(uint16_t port, uint16_t wanted, uint16_t *mtu) {
    struct rte_eth_dev_info info;
    int error = rte_eth_dev_info_get(port, &info);
    if (error != 0 || wanted == 0)
        return error != 0 ? error : rte_eth_dev_get_mtu(port, mtu);
    *mtu = wanted;
    return wanted < info.min_mtu || wanted > info.max_mtu ? -ERANGE : 0;
}

static int set_queues(uint16_t port, const struct dunlin_dpdk_wish *wish,
                      struct dunlin_dpdk_device *device, int interrupts) {
    struct rte_eth_conf conf = {.rxmode.mtu = device->mtu, .intr_conf.rxq = interrupts != 0};
    int error = rte_eth_dev_configure(port, 1, 1, &conf);
    if (error != 0)
        return error;
    uint16_t rx = (uint16_t)wish->descriptors, tx = (uint16_t)wish->descriptors;
    error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx, &tx);
    if (error != 0)
        return error;
    device->rx_descriptors = rx;
    int node = rte_eth_dev_socket_id(port);
    error = rte_eth_rx_queue_setup(port, QUEUE, rx, (unsigned)node, NULL, device->pool);
    return error != 0 ? error : rte_eth_tx_queue_setup(port, QUEUE, tx, (unsigned)node, NULL);
}

static void *make_pool(uint16_t port, uint32_t packets, uint32_t room) {
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof name, "dunlin-%u", port);
    return rte_pktmbuf_pool_create(name, packets, CACHE, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + room),
                                   rte_eth_dev_socket_id(port));
}

/* Whether the device splits long frames although each fits one packet. Drivers that do not know
 * are virtual ones, which do not split. */
static int splits(uint16_t port) {
    struct rte_eth_rxq_info queue;
    if (rte_eth_rx_queue_info_get(port, QUEUE, &queue) != 0 || !queue.scattered_rx)
        return 0;
    const char why[] = "the device splits frames as long as its MTU allows; give a shorter mtu=\n";
    hear(NULL, why, sizeof why - 1);
    return 1;
}

/* Starts the queues, with interrupts if the device can do so. */
static int start_queues(uint16_t port, const struct dunlin_dpdk_wish *wish,
                        struct dunlin_dpdk_device *device) {
    for (int interrupts = 1;; interrupts = 0) {
        int error = set_queues(port, wish, device, interrupts);
        if (error == 0)
            error = rte_eth_dev_start(port);
        if (error == 0 || !interrupts)
            return error;
    }
}

/* Forgets the packets that have rung. */
static void clear_bell(int bell) {
    struct rte_epoll_event event;
    while (rte_epoll_wait_interruptible(bell, &event, 1, 0) > 0)
        ;
}

/* The bell of a device, or -1 if it has no interrupts. A driver whose interrupts cannot be switched
 * rings for each packet. */
static int make_bell(uint16_t port) {
    int bell = epoll_create1(EPOLL_CLOEXEC);
    if (bell < 0)
        return -1;
    if (rte_eth_dev_rx_intr_ctl_q(port, QUEUE, bell, RTE_INTR_EVENT_ADD, NULL) == 0) {
        int error = rte_eth_dev_rx_intr_enable(port, QUEUE);
        rte_eth_dev_rx_intr_disable(port, QUEUE);
        if (error == 0 || error == -ENOTSUP)
            return bell;
    }
    close(bell);
    return -1;
}

static int start_device(uint16_t port, const struct dunlin_dpdk_wish *wish,
                        struct dunlin_dpdk_device *device) {
    int error = choose_mtu(port, wish->mtu, &device->mtu);
    if (error != 0)
        return error;
    device->room = (uint32_t)device->mtu + wish->around;
    /* Cards count the room of a packet in steps of up to 1 KiB, or in powers of two from 2 KiB on,
     * and round down: with less room they would split the longest frames. */
    uint32_t room = rte_align32pow2(RTE_MAX(device->room, 2048U));
    if (room + RTE_PKTMBUF_HEADROOM > UINT16_MAX)
        return -ERANGE;
    device->pool = make_pool(port, wish->packets, room);
    if (device->pool == NULL)
        return -rte_errno;
    error = start_queues(port, wish, device);
    if (error == 0 && splits(port))
        error = -EMSGSIZE;
    if (error != 0)
        return error;
    struct rte_ether_addr mac = {0};
    error = rte_eth_macaddr_get(port, &mac);
    /* A ring has no address, but neighbours need one. */
    if (rte_is_zero_ether_addr(&mac))
        rte_eth_random_addr(mac.addr_bytes);
    memcpy(device->mac, mac.addr_bytes, sizeof device->mac);
    /* Not every device can be asked for this, and virtual ones have these packets anyway. */
    if (wish->groups)
        rte_eth_allmulticast_enable(port);
    return error;
}

/* Releases a device that cannot be started, and detaches it if this call attached it. One that runs
 * is never closed: the thread of DPDK that handles a peer's farewell (memif) may be using it. */
static void abandon(const struct dunlin_dpdk_device *device, int is_new) {
    struct rte_eth_dev_info info;
    struct rte_device *below = NULL;
    if (is_new && rte_eth_dev_info_get(device->port, &info) == 0)
        below = info.device;
    rte_eth_dev_stop(device->port);
    rte_eth_dev_close(device->port);
    if (below != NULL)
        rte_dev_remove(below);
    rte_mempool_free(device->pool);
}

/* Opens the device that `arguments` names, as `--vdev` and `-a` of DPDK do. The caller opens one
 * device at a time; -EBUSY if it is open. */
int dunlin_dpdk_open(const char *arguments, const struct dunlin_dpdk_wish *wish,
                     struct dunlin_dpdk_device *device) {
    memset(device, 0, sizeof *device);
    know_thread();
    int is_new, error = attach(arguments, &device->port, &is_new);
    if (error != 0)
        return error;
    error = start_device(device->port, wish, device);
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
    device->bell = make_bell(device->port);
    return 0;
}

/* Makes the bell ring when a packet comes, from now on, or no more. */
void dunlin_dpdk_listen(uint16_t port, int bell, int on) {
    know_thread();
    rte_eth_dev_rx_intr_disable(port, QUEUE);
    clear_bell(bell);
    if (on)
        rte_eth_dev_rx_intr_enable(port, QUEUE);
}

/* Gets up to `count` packets. A packet of several pieces is longer than the device's MTU allows,
 * and has the length 0. */
uint32_t dunlin_dpdk_receive(uint16_t port, void **handles, uint8_t **bytes, uint32_t *lengths,
                             uint32_t count) {
    know_thread();
    struct rte_mbuf **packets = (struct rte_mbuf **)handles;
    uint32_t got = rte_eth_rx_burst(port, QUEUE, packets, (uint16_t)count);
    for (uint32_t i = 0; i < got; i++) {
        bytes[i] = rte_pktmbuf_mtod(packets[i], uint8_t *);
        lengths[i] = packets[i]->nb_segs == 1 ? packets[i]->data_len : 0;
        rte_prefetch0(bytes[i]);
    }
    return got;
}

/* Gets `count` empty packets from a pool, or none. */
uint32_t dunlin_dpdk_take(void *pool, void **handles, uint8_t **bytes, uint32_t count) {
    know_thread();
    struct rte_mbuf **packets = (struct rte_mbuf **)handles;
    if (rte_mempool_get_bulk(pool, handles, count) != 0)
        return 0;
    for (uint32_t i = 0; i < count; i++)
        bytes[i] = (uint8_t *)packets[i]->buf_addr + RTE_PKTMBUF_HEADROOM;
    return count;
}

/* Sends packets from `dunlin_dpdk_take`, which are as their last owner has left them, and returns
 * the number of those that the device has taken over. */
uint32_t dunlin_dpdk_send(uint16_t port, void *const *handles, const uint32_t *lengths,
                          uint32_t count) {
    know_thread();
    struct rte_mbuf **packets = (struct rte_mbuf **)handles;
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
    return rte_eth_tx_burst(port, QUEUE, packets, (uint16_t)count);
}

/* Whether a packet is in one piece, which belongs to nothing else. */
static inline int is_plain(const struct rte_mbuf *packet) {
    return packet->refcnt == 1 && packet->nb_segs == 1 && packet->next == NULL &&
           RTE_MBUF_DIRECT(packet);
}

/* Gives packets back to their pools, those of one pool together. */
void dunlin_dpdk_free(void *const *handles, uint32_t count) {
    know_thread();
    struct rte_mbuf **packets = (struct rte_mbuf **)handles;
    for (uint32_t at = 0, first = 0; at < count; first = at) {
        struct rte_mempool *pool = packets[at]->pool;
        while (at < count && packets[at]->pool == pool && is_plain(packets[at]))
            at++;
        if (at > first)
            rte_mempool_put_bulk(pool, &handles[first], at - first);
        else
            rte_pktmbuf_free(packets[at++]);
    }
}

/* Makes the device give back packets that it has sent. */
void dunlin_dpdk_ask(uint16_t port) {
    know_thread();
    rte_eth_tx_done_cleanup(port, QUEUE, 0);
}

/* Packets that the device had to drop because no descriptor or no empty packet was there. */
uint64_t dunlin_dpdk_missed(uint16_t port) {
    struct rte_eth_stats stats;
    return rte_eth_stats_get(port, &stats) != 0 ? 0 : stats.imissed + stats.rx_nombuf;
}

/* Empty packets in a pool, for tests. */
uint32_t dunlin_dpdk_empty(const void *pool) { return rte_mempool_avail_count(pool); }
