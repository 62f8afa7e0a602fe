#!/bin/sh
# Builds libdunlin_dpdk.so against the DPDK of this machine (Debian: libdpdk-dev and pkg-config)
# into the folder that the argument names, or else next to the programs that cargo builds.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=${1:-$here/../../../target/debug}
mkdir -p "$to"
# shellcheck disable=SC2046
"${CC:-cc}" -O2 -Wall -Wextra -Werror -fPIC -shared $(pkg-config --cflags libdpdk) \
    -o "$to/libdunlin_dpdk.so" "$here/dunlin_dpdk.c" "$here/rules.c" "$here/dense.c" "$here/state.c" \
    $(pkg-config --libs libdpdk)
echo "$to/libdunlin_dpdk.so"
