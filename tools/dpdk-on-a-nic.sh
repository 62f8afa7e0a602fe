#!/bin/sh
# Tries the transport dpdk between two hosts with network cards, for which this project has no
# machine: with copies, and then with the data of long packets read in the msgbufs (lend=) and a queue
# for the endpoint by a rule of the card (queues=). Run it as root on both hosts, first on the server.
# DEVICE is the first part of dpdk.device, such as 0000:01:00.0; then follow this host's address
# and prefix length in the data network, and ADDRESS, the server's address in the control plane.
#
#   tools/dpdk-on-a-nic.sh server DEVICE 10.1.0.1/24 ADDRESS [DUNLIN]
#   tools/dpdk-on-a-nic.sh client DEVICE 10.1.0.2/24 ADDRESS [DUNLIN]
#
# Before this, bind the card to DPDK's driver (dpdk-devbind.py), and reserve huge pages.
set -eu

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
[ $# -ge 4 ] || usage
role=$1 device=$2 data=$3 address=$4 dunlin=${5:-dunlin}
# Any address that a peer names and has proven to be its own.
peers="nexus.allow_peers=0.0.0.0/0, ::/0"

# The counters of the device, some of which must stay 0.
show() {
    "$dunlin" stats "$1" --json | tr ',' '\n' | grep -E \
        '"(tx_lent|rx_rules|rx_rules_refused|rx_device_missed|rx_wrong_sum|tx_unanswered)"'
}

for options in lend=0,queues=1 lend=512,queues=2; do
    over="dpdk:$device;ip=$data,$options"
    case $role in
    server)
        # Ctrl-C ends this part, and not the script.
        trap : INT
        echo "serving with $options; Ctrl-C when the client has finished this part"
        "$dunlin" echo-server "$address:31850" --transport "$over" \
            --set "$peers" || true
        ;;
    client)
        echo "$options; Enter when the server says that it serves with it"
        read -r _
        for size in 32 1400 100000 8000000; do
            "$dunlin" ping "$address:31850" -c 1000 -i 1ms -s "$size" --transport "$over" \
                --set "$peers" &
            sleep 1
            show "$!" || true
            wait "$!"
        done
        ;;
    *) usage ;;
    esac
done
