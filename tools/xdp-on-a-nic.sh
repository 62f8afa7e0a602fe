#!/bin/sh
# Tries the transport xdp between two hosts with network cards, for which this project has no machine:
# generic, native and zero-copy mode, all queues of the interface, and that the interface is as before
# when everything has ended. Run it as root on both hosts, first on the server.
#
#   tools/xdp-on-a-nic.sh server eth0 10.0.0.1 [DUNLIN]
#   tools/xdp-on-a-nic.sh client eth0 10.0.0.1 [DUNLIN]
#
# In native mode, some drivers reset the link; the script then waits until it is up again.
set -eu

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
[ $# -ge 3 ] || usage
role=$1 interface=$2 address=$3 dunlin=${4:-dunlin}

# The options of each mode. An endpoint gets all queues, or the most that it may have.
queues=$(find "/sys/class/net/$interface/queues/" -name 'rx-*' | wc -l)
[ "$queues" -le 64 ] || queues=64
options() {
    case $1 in
    generic) echo "--set xdp.mode=generic --set xdp.queues=1" ;;
    native) echo "--set xdp.mode=native --set xdp.queues=$queues" ;;
    zero-copy) echo "--set xdp.mode=native --set xdp.queues=$queues --set xdp.zero_copy=on" ;;
    esac
}

# The state that must not change: what ip shows of the link, except counters and an XDP program.
link() {
    ip -d link show dev "$interface" | sed 's/ xdp[^ ]*//; s/ prog\/xdp.*//'
}

until_up() {
    for _ in $(seq 100); do
        if [ "$(cat "/sys/class/net/$interface/operstate")" = up ]; then return; fi
        sleep 0.1
    done
    echo "$interface did not come up again" >&2
    exit 1
}

before=$(link)
failed=0
case $role in
server)
    for mode in generic native zero-copy; do
        echo "serving in $mode mode; Ctrl-C when the client has finished this mode"
        # Each option is a word.
        # shellcheck disable=SC2046
        "$dunlin" echo-server "$address:31850" --transport "xdp:$interface" $(options "$mode") || true
        until_up
    done
    ;;
client)
    for mode in generic native zero-copy; do
        echo "$mode mode; Enter when the server says that it serves in this mode"
        read -r _
        for size in 32 1400 100000; do
            # shellcheck disable=SC2046
            "$dunlin" ping "$address:31850" -c 1000 -i 1ms -s "$size" \
                --transport "xdp:$interface" $(options "$mode") || {
                echo "$mode: $size bytes failed" >&2
                failed=1
            }
            until_up
        done
    done
    ;;
*) usage ;;
esac
if [ "$(link)" != "$before" ]; then
    echo "the link is not as before:" >&2
    link >&2
    exit 1
fi
ethtool -S "$interface" 2>/dev/null | grep -i -E 'drop|err' | grep -v ': 0$' || true
echo "$interface is as it was"
exit "$failed"
