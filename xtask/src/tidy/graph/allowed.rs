//! The crates on which each of our crates may depend, as a table.

use super::FOR_TESTS;

/// One of our crates.
pub(super) struct Rule {
    pub(super) name: &'static str,
    /// Our crates on which it may depend, in builds and in tests.
    pub(super) may_use: &'static [&'static str],
    /// The foreign crates on which it may depend; `None` if it may depend on any.
    pub(super) libraries: Option<&'static [&'static str]>,
    /// Crates, ours or foreign, that are compiled only if a program enables a feature for them.
    pub(super) optional: &'static [&'static str],
}

const ALL: &[&str] = &[
    "dunlin-wire",
    "dunlin-msgbuf",
    "dunlin-core",
    "dunlin-control",
    "dunlin-channel",
    "dunlin-insight",
    "dunlin-transport",
    "dunlin-nexus",
    "dunlin-sim",
    "dunlin-scenario",
    "dunlin-service",
    "dunlin-memcached",
    "dunlin-front",
    "dunlin",
    "dunlin-bench",
    "harness",
];

/// The crates whose instructions `budget.toml` limits, and those that their programs use.
const COUNTED: &[&str] = &[
    "dunlin",
    "dunlin-core",
    "dunlin-dpdk",
    "dunlin-index",
    "dunlin-kv",
    "dunlin-local",
    "dunlin-msgbuf",
    "dunlin-replica",
    "dunlin-sequencer",
    "dunlin-service",
    "dunlin-store",
    FOR_TESTS,
    "dunlin-transport",
    "dunlin-wire",
    "dunlin-xdp",
];

const UNDER_NEXUS: &[&str] = &[
    "dunlin-wire",
    "dunlin-msgbuf",
    "dunlin-core",
    "dunlin-control",
    "dunlin-insight",
    "dunlin-transport",
];

const UNDER_FACE: &[&str] = &[
    "dunlin-wire",
    "dunlin-msgbuf",
    "dunlin-core",
    "dunlin-control",
    "dunlin-transport",
    "dunlin-nexus",
    "dunlin-service",
    "dunlin-local",
    "dunlin-hub",
    "dunlin-offload",
    "dunlin-server",
];

/// The file of the rules.
pub(super) const FILE: &str = file!();

/// Our crates, each with its rule; a crate that is not in the table is a finding.
pub(super) const RULES: &[Rule] = &[
    // Crates that every user compiles use few libraries, so that they compile quickly.
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-wire", &[])
    },
    Rule {
        libraries: Some(&["libc"]),
        ..rule("dunlin-msgbuf", &["dunlin-wire"])
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-core", &["dunlin-wire", "dunlin-msgbuf"])
    },
    Rule {
        libraries: Some(&["libc"]),
        ..rule(
            "dunlin-transport",
            &["dunlin-wire", "dunlin-msgbuf", "dunlin-core"],
        )
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-packet", &[])
    },
    Rule {
        libraries: Some(&["libc"]),
        ..rule(
            "dunlin-xdp",
            &[
                "dunlin-wire",
                "dunlin-msgbuf",
                "dunlin-core",
                "dunlin-packet",
                "dunlin-transport",
            ],
        )
    },
    Rule {
        libraries: Some(&["libc"]),
        ..rule(
            "dunlin-dpdk",
            &[
                "dunlin-wire",
                "dunlin-msgbuf",
                "dunlin-core",
                "dunlin-packet",
                "dunlin-transport",
            ],
        )
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-control", &["dunlin-wire", "dunlin-core"])
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-channel", &["dunlin-wire", "dunlin-core"])
    },
    Rule {
        libraries: Some(&["libc"]),
        ..rule("dunlin-insight", &["dunlin-wire"])
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-keys", &[])
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-folder", &[])
    },
    rule(FOR_TESTS, &["dunlin-wire", "dunlin-msgbuf", "dunlin-core"]),
    rule(
        "dunlin-sim",
        &[
            "dunlin-wire",
            "dunlin-msgbuf",
            "dunlin-core",
            "dunlin-control",
            "dunlin-channel",
        ],
    ),
    rule("dunlin-scenario", &["dunlin-core", "dunlin-sim", "harness"]),
    Rule {
        libraries: Some(&[]),
        optional: &[
            "dunlin-service-macros",
            "postcard",
            "prost",
            "serde",
            "serde_json",
            "tracing",
            "zerocopy",
        ],
        ..rule(
            "dunlin-service",
            &["dunlin-wire", "dunlin-msgbuf", "dunlin-core"],
        )
    },
    rule("dunlin-service-macros", &[]),
    Rule {
        libraries: Some(&["memmap2"]),
        ..rule("dunlin-store", &["gopt"])
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-memcached", &["dunlin-store"])
    },
    Rule {
        libraries: Some(&[]),
        optional: &[
            "dunlin-hub",
            "dunlin-nexus",
            "dunlin-service",
            "dunlin-sim",
            "dunlin-transport",
        ],
        ..rule(
            "dunlin-kv",
            &[
                "dunlin-wire",
                "dunlin-msgbuf",
                "dunlin-core",
                "dunlin-channel",
                "dunlin-store",
            ],
        )
    },
    Rule {
        libraries: Some(&["bytes", "protobuf", "raft", "raft-engine", "slog"]),
        optional: &[
            "dunlin-folder",
            "dunlin-nexus",
            "dunlin-sim",
            "dunlin-transport",
        ],
        ..rule(
            "dunlin-replica",
            &["dunlin-wire", "dunlin-msgbuf", "dunlin-core", "dunlin-keys"],
        )
    },
    Rule {
        libraries: Some(&["scc"]),
        optional: &["dunlin-nexus", "dunlin-sim", "dunlin-transport"],
        ..rule(
            "dunlin-index",
            &["dunlin-wire", "dunlin-msgbuf", "dunlin-core", "dunlin-keys"],
        )
    },
    Rule {
        libraries: Some(&[]),
        optional: &[
            "dunlin-folder",
            "dunlin-local",
            "dunlin-nexus",
            "dunlin-replica",
            "dunlin-service",
            "dunlin-sim",
            "dunlin-transport",
        ],
        ..rule(
            "dunlin-sequencer",
            &["dunlin-wire", "dunlin-msgbuf", "dunlin-core"],
        )
    },
    Rule {
        libraries: Some(&["mio", "rustix"]),
        optional: &["dunlin-transport"],
        ..rule(
            "dunlin-front",
            &[
                "dunlin-wire",
                "dunlin-msgbuf",
                "dunlin-core",
                "dunlin-store",
                "dunlin-kv",
                "dunlin-memcached",
                "dunlin-nexus",
            ],
        )
    },
    Rule {
        libraries: Some(&["libc", "tracing"]),
        optional: &["dunlin-dpdk", "dunlin-xdp"],
        ..rule("dunlin-nexus", UNDER_NEXUS)
    },
    Rule {
        libraries: Some(&[]),
        ..rule(
            "dunlin-local",
            &[
                "dunlin-wire",
                "dunlin-msgbuf",
                "dunlin-core",
                "dunlin-transport",
                "dunlin-nexus",
                "dunlin-service",
            ],
        )
    },
    Rule {
        libraries: Some(&[]),
        ..rule("dunlin-mailbox", &[])
    },
    Rule {
        libraries: Some(&[]),
        ..rule(
            "dunlin-offload",
            &[
                "dunlin-wire",
                "dunlin-msgbuf",
                "dunlin-core",
                "dunlin-mailbox",
                "dunlin-service",
                "dunlin-local",
            ],
        )
    },
    Rule {
        libraries: Some(&["pin-project-lite", "tower-service"]),
        ..rule(
            "dunlin-hub",
            &[
                "dunlin-wire",
                "dunlin-msgbuf",
                "dunlin-core",
                "dunlin-control",
                "dunlin-channel",
                "dunlin-mailbox",
                "dunlin-transport",
                "dunlin-nexus",
                "dunlin-service",
            ],
        )
    },
    Rule {
        libraries: Some(&["pin-project-lite", "signal-hook", "tower-service"]),
        ..rule(
            "dunlin-server",
            &[
                "dunlin-wire",
                "dunlin-core",
                "dunlin-transport",
                "dunlin-nexus",
                "dunlin-service",
                "dunlin-local",
            ],
        )
    },
    Rule {
        optional: &["dunlin-dpdk", "dunlin-hub", "dunlin-server", "dunlin-xdp"],
        ..rule(
            "dunlin-settings",
            &[
                "dunlin-wire",
                "dunlin-core",
                "dunlin-control",
                "dunlin-transport",
                "dunlin-nexus",
                "dunlin-hub",
                "dunlin-server",
            ],
        )
    },
    Rule {
        libraries: Some(&[]),
        optional: &[
            "dunlin-dpdk",
            "dunlin-hub",
            "dunlin-index",
            "dunlin-kv",
            "dunlin-offload",
            "dunlin-replica",
            "dunlin-sequencer",
            "dunlin-settings",
            "dunlin-xdp",
        ],
        ..rule("dunlin", UNDER_FACE)
    },
    Rule {
        libraries: Some(&["tokio", "tower"]),
        ..rule("dunlin-tokio", &["dunlin"])
    },
    rule("dunlin-proto-example", &["dunlin"]),
    rule("dunlin-otel-example", &["dunlin"]),
    // `peers` starts a program of another workspace, which uses `dunlin`.
    rule("peers", &[]),
    Rule {
        libraries: Some(&[]),
        ..rule("gopt", &[])
    },
    rule("gopt-c", &[]),
    rule("gopt-lookups", &["gopt", "gopt-c"]),
    rule("harness", &[]),
    rule("gopt-cli", &["gopt", "gopt-c", "gopt-lookups", "harness"]),
    rule(
        "dunlin-bench",
        &[
            "dunlin",
            "dunlin-core",
            "dunlin-dpdk",
            "dunlin-nexus",
            "dunlin-scenario",
            "dunlin-sim",
            "dunlin-store",
            "dunlin-transport",
            "gopt",
            "harness",
        ],
    ),
    rule("dunlin-cli", ALL),
    rule(
        "dunlin-hostile",
        &[
            "dunlin-wire",
            "dunlin-core",
            "dunlin-transport",
            "dunlin-nexus",
            FOR_TESTS,
            "harness",
        ],
    ),
    rule("dunlin-misuse", &["dunlin"]),
    rule(
        "dunlin-service-tests",
        &[
            "dunlin-core",
            "dunlin-hub",
            "dunlin-index",
            "dunlin-kv",
            "dunlin-local",
            "dunlin-nexus",
            "dunlin-sequencer",
            "dunlin-store",
            FOR_TESTS,
            "dunlin-transport",
            "dunlin-wire",
        ],
    ),
    rule("dunlin-book", &["dunlin", "dunlin-tokio", FOR_TESTS]),
    rule("xtask", &[]),
    rule("dunlin-counted", COUNTED),
];

const fn rule(name: &'static str, may_use: &'static [&'static str]) -> Rule {
    Rule {
        name,
        may_use,
        libraries: None,
        optional: &[],
    }
}
