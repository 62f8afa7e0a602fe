#!/usr/bin/env bash
# Builds eRPC over shared memory, and over its own DPDK transport, as peers of `dunlin bench compare`.
#
#   build.sh CLONE FOLDER
#
# CLONE is a git repository of https://github.com/erpc-io/eRPC, with or without a work tree; the
# script does not change it. It builds these programs into FOLDER, even if they exist already:
#   erpc-shipped         as it is shipped, with congestion control
#   erpc-no-control      without congestion control
#   erpc-no-control-4k   without congestion control, and with packets of 4 KB
#   erpc-dpdk-shipped, erpc-dpdk-no-control   over DPDK, between two devices of memif
# Needs git, g++ and libnuma-dev. The last two programs also need libdpdk-dev and pkg-config; without
# these packages, the script leaves them out.
set -euo pipefail

if [ $# -ne 2 ]; then
    sed -n '2,13s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
clone=$(realpath "$1")
mkdir -p "$2"
folder=$(realpath "$2")
# The commit for which the patch and the transport were written.
commit=de83dab3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone --quiet --no-checkout "$clone" "$work/erpc"
git -C "$work/erpc" -c advice.detachedHead=false checkout --quiet "$commit"
git -C "$work/erpc" apply "$here/erpc.patch"

build() { # NAME FLAG...
    local name=$1
    shift
    echo "building $name" >&2
    # The flags of eRPC's own CMake with PERF=ON, without -Werror and link-time optimisation, which a
    # single translation unit does not need.
    # DPDK's flags come first, because they name an older processor.
    g++ "${dpdk_flags[@]}" -std=c++11 -O3 -march=native -DNDEBUG -fno-strict-aliasing -w \
        -DERPC_TRANSPARENT -DERPC_LOG_LEVEL=0 -DERPC_TESTING=false \
        "-DERPC_COMMIT=\"$commit\"" "$@" \
        -I "$here" -I "$work/erpc/src" \
        -isystem "$work/erpc/third_party" -isystem "$work/erpc/third_party/asio/include" \
        "$here/whole.cc" -o "$folder/$name" "${dpdk_libraries[@]}" -lnuma -lpthread -lrt
}

dpdk_flags=() dpdk_libraries=()

build erpc-shipped
build erpc-no-control -DERPC_CC=false
build erpc-no-control-4k -DERPC_CC=false -DSHM_DATA_BYTES=4032

if ! pkg-config --exists libdpdk 2>/dev/null; then
    echo "without erpc-dpdk-*: there is no libdpdk" >&2
    exit
fi
read -ra dpdk_flags <<<"$(pkg-config --cflags libdpdk)"
read -ra dpdk_libraries <<<"$(pkg-config --libs libdpdk)"
# eRPC knows these by the names that DPDK had before 21.11.
for name in ETH_MQ_RX_NONE ETH_MQ_RX_RSS ETH_MQ_TX_NONE ETH_RSS_UDP ETH_LINK_UP ETH_SPEED_NUM_NONE; do
    dpdk_flags+=("-D$name=RTE_$name")
done
dpdk_flags+=(-DERPC_DPDK=true -DERPC_MEMIF)
build erpc-dpdk-shipped
build erpc-dpdk-no-control -DERPC_CC=false
