//! The settings of servers of the key-value service.

use crate::options::KvOptions;
use crate::setting::{FieldOf, Lens, Setting, Unit};

const fn row(
    name: &'static str,
    unit: Unit,
    lens: Lens<KvOptions>,
    meaning: &'static str,
) -> Setting {
    Setting::new(name, unit, FieldOf::Kv(lens), meaning)
}

pub(super) const KV: &[Setting] = &[
    row(
        "kv.memory",
        Unit::Bytes,
        |kv| &mut kv.memory,
        "memory for all items of `dunlin kv serve`, which takes it at the start",
    )
    .within(0..=1 << 50),
    row(
        "kv.mode",
        Unit::Word,
        |kv| &mut kv.mode,
        "`cache`: the oldest items leave when the memory is used up; `store`: writes fail",
    )
    .words(&["cache", "store"]),
    row(
        "kv.threads",
        Unit::Count,
        |kv| &mut kv.threads,
        "threads of the server, each with a partition of the keys",
    )
    .within(1..=1024),
    row(
        "kv.memcached",
        Unit::Address,
        |kv| &mut kv.memcached,
        "address at which memcached's clients connect",
    )
    .words(&["none"]),
    row(
        "kv.memcached_socket",
        Unit::Path,
        |kv| &mut kv.memcached_socket,
        "UNIX socket at which memcached's clients connect",
    )
    .words(&["none"]),
    row(
        "kv.max_connections",
        Unit::Count,
        |kv| &mut kv.max_connections,
        "most connections of memcached's clients; further ones get an error and are closed",
    )
    .within(1..=1_000_000),
    row(
        "kv.auth_file",
        Unit::Path,
        |kv| &mut kv.auth_file,
        "file with a line `name:password` for each of memcached's clients; none: they need no \
         password",
    )
    .words(&["none"]),
    row(
        "kv.flush_all",
        Unit::Switch,
        |kv| &mut kv.flush_all,
        "memcached's clients may remove all items with `flush_all`",
    ),
];
