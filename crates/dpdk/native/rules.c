/* Rules (rte_flow) by which a device puts the datagrams of an endpoint into a queue of its own. */
#include <errno.h>
#include <string.h>

#include <rte_flow.h>
#include <rte_log.h>

#include "dunlin_dpdk.h"

int dunlin_dpdk_has_rules(uint16_t port) {
    struct rte_flow_attr ingress = {.ingress = 1};
    struct rte_flow_item nothing = {.type = RTE_FLOW_ITEM_TYPE_END};
    struct rte_flow_action none = {.type = RTE_FLOW_ACTION_TYPE_END};
    struct rte_flow_error why;
    return rte_flow_validate(port, &ingress, &nothing, &none, &why) != -ENOSYS;
}

void *dunlin_dpdk_steer(uint16_t port, uint16_t queue, const uint8_t *address, uint16_t number) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    int is_v4 = memcmp(address, mapped, sizeof mapped) == 0;
    struct rte_flow_item_ipv4 v4 = {0}, v4_mask = {.hdr.dst_addr = UINT32_MAX};
    struct rte_flow_item_ipv6 v6 = {0}, v6_mask = {0};
    struct rte_flow_item_udp udp = {.hdr.dst_port = rte_cpu_to_be_16(number)};
    struct rte_flow_item_udp udp_mask = {.hdr.dst_port = UINT16_MAX};
    memcpy(&v4.hdr.dst_addr, address + 12, 4);
    memcpy(v6.hdr.dst_addr, address, 16);
    memset(v6_mask.hdr.dst_addr, 0xff, 16);
    struct rte_flow_item items[] = {
        {.type = RTE_FLOW_ITEM_TYPE_ETH},
        {.type = RTE_FLOW_ITEM_TYPE_IPV6, .spec = &v6, .mask = &v6_mask},
        {.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp, .mask = &udp_mask},
        {.type = RTE_FLOW_ITEM_TYPE_END}};
    if (is_v4)
        items[1] = (struct rte_flow_item){RTE_FLOW_ITEM_TYPE_IPV4, &v4, NULL, &v4_mask};
    struct rte_flow_action_queue to = {.index = queue};
    struct rte_flow_action actions[] = {{RTE_FLOW_ACTION_TYPE_QUEUE, &to},
                                        {.type = RTE_FLOW_ACTION_TYPE_END}};
    struct rte_flow_error why = {0};
    void *rule = rte_flow_create(port, &(struct rte_flow_attr){.ingress = 1}, items, actions, &why);
    if (rule == NULL)
        RTE_LOG(WARNING, USER1, "no rule for port %u: %s\n", number, why.message);
    return rule;
}

void dunlin_dpdk_unsteer(uint16_t port, void *rule) { rte_flow_destroy(port, rule, NULL); }
