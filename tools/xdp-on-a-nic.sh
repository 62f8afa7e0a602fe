#!/bin/sh
# Tries the transport xdp between two hosts with network cards, for which this project has no machine:
# generic, native and zero-copy mode, all queues of the interface, a queue by a rule of the card, which
# `dunlin xdp-setup` makes, and that the interface is as before when everything has ended. Run it as
# root on both hosts, first on the server. OWN is the address of the host itself.
#
#   tools/xdp-on-a-nic.sh server eth0 ADDRESS [DUNLIN]
#   tools/xdp-on-a-nic.sh client eth0 ADDRESS OWN [DUNLIN]
#
# For a VLAN, run it again with the interface of the VLAN (eth0.5) in place of eth0, and with
# addresses of the VLAN. Such an interface has no rules.
# In native mode, some drivers reset the link; the script then waits until it is up again.
set -eu

usage() {
    sed -n 's/^#   //p' "$0" >&2
    exit 2
}
[ $# -ge 3 ] || usage
role=$1 interface=$2 address=$3 own=$3
if [ "$role" = client ]; then
    [ $# -ge 4 ] || usage
    own=$4
    shift
fi
dunlin=${4:-dunlin}

# The interface with the queues, and the ways to use it.
device=$interface modes="generic native zero-copy rules"
for lower in "/sys/class/net/$interface"/lower_*; do
    [ -e "$lower" ] || continue
    device=${lower##*/lower_} modes="generic native zero-copy"
done

# The options of each mode. An endpoint gets all queues, or the most that it may have; by a rule, it
# gets one of them, the last.
queues=$(find "/sys/class/net/$device/queues/" -name 'rx-*' | wc -l)
last=$((queues - 1))
[ "$queues" -le 64 ] || queues=64
port=31900
options() {
    case $1 in
    generic) echo "--set xdp.mode=generic --set xdp.queues=1" ;;
    native) echo "--set xdp.mode=native --set xdp.queues=$queues" ;;
    zero-copy) echo "--set xdp.mode=native --set xdp.queues=$queues --set xdp.zero_copy=on" ;;
    rules) echo "--set xdp.queue=$last --set xdp.setup=$folder/socket --set udp.port=$port" ;;
    esac
}

# The daemon that makes rules, with a table that grants the queue to this user.
folder=$(mktemp -d)
daemon=
end_daemon() {
    [ -z "$daemon" ] || kill "$daemon" 2>/dev/null || true
    [ -z "$daemon" ] || wait "$daemon" || true
    daemon=
}
trap 'end_daemon; rm -r "$folder"' EXIT
start_daemon() {
    cat >"$folder/table.toml" <<EOF
[[grant]]
user = $(id -u)
interface = "$interface"
addresses = ["$own"]
ports = "$port-$port"
queues = "$last-$last"
rules = true
EOF
    "$dunlin" xdp-setup --table "$folder/table.toml" --socket "$folder/socket" &
    daemon=$!
    for _ in $(seq 100); do
        [ ! -S "$folder/socket" ] || return 0
        sleep 0.1
    done
    echo "the daemon does not listen" >&2
    exit 1
}

# The counters of an endpoint with a rule: rx_rules should be 1, and rx_rules_refused 0.
show_rules() {
    "$dunlin" stats "$1" --json | tr ',' '\n' | grep -E \
        '"(rx_datagrams|rx_rules|rx_rules_refused)"'
}

# The state that must not change: the link in the words of ip, except counters and an XDP program, and
# the rules of the card.
link() {
    ip -d link show dev "$interface" | sed 's/ xdp[^ ]*//; s/ prog\/xdp.*//'
    ethtool -u "$device" 2>/dev/null || true
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
    # Ctrl-C ends one mode, and not the script.
    trap : INT
    for mode in $modes; do
        [ "$mode" != rules ] || start_daemon
        echo "serving in $mode mode; Ctrl-C when the client has finished this mode"
        # Each option is a word.
        # shellcheck disable=SC2046
        "$dunlin" echo-server "$address:31850" --transport "xdp:$interface" $(options "$mode") || true
        until_up
    done
    ;;
client)
    for mode in $modes; do
        [ "$mode" != rules ] || start_daemon
        echo "$mode mode; Enter when the server says that it serves in this mode"
        read -r _
        for size in 32 1400 100000; do
            # shellcheck disable=SC2046
            "$dunlin" ping "$address:31850" -c 1000 -i 1ms -s "$size" \
                --transport "xdp:$interface" $(options "$mode") &
            sleep 0.5
            [ "$mode" != rules ] || show_rules "$!" || true
            wait "$!" || {
                echo "$mode: $size bytes failed" >&2
                failed=1
            }
            until_up
        done
    done
    ;;
*) usage ;;
esac
end_daemon
if [ "$(link)" != "$before" ]; then
    echo "the link is not as before:" >&2
    link >&2
    exit 1
fi
ethtool -S "$interface" 2>/dev/null | grep -i -E 'drop|err' | grep -v ': 0$' || true
echo "$interface is as it was"
exit "$failed"
