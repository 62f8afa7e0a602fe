#!/bin/sh
# Builds a server from e5df222, the last commit whose servers know no metadata of requests, as
# FOLDER/old-server. In a clone without that commit, it ends with 77: it cannot run there.
# Usage: sh tools/old-server/build.sh FOLDER
set -eu
commit=e5df222ce
to=$1
here=$(cd "$(dirname "$0")" && pwd)

git -C "$here" cat-file -e "$commit^{commit}" 2>/dev/null || {
    echo "this clone has no commit $commit" >&2
    exit 77
}
tree=$to/tree
rm -rf "$tree"
mkdir -p "$tree"
git -C "$here/../.." archive "$commit" | tar -x -C "$tree"
mkdir -p "$tree/crates/old-server/src"
cp "$here/manifest.toml" "$tree/crates/old-server/Cargo.toml"
cp "$here/main.rs" "$tree/crates/old-server/src/main.rs"
# Its packages come from the old lock file, to which only the server itself is added.
cd "$tree"
CARGO_TARGET_DIR=$to/target cargo build --quiet --package old-server
cp "$to/target/debug/old-server" "$to/old-server"
rm -rf "$tree"
