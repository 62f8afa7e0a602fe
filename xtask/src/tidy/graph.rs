//! The crates that each crate may depend on (`ARCHITECTURE.md`, "The crate graph"), from `cargo
//! metadata`, and the crates that forbid unsafe code (convention 9).

use std::collections::BTreeSet;

use anyhow::Context;
use serde_json::Value;

use super::Finding;
use super::tree::Tree;

/// One of our crates.
struct Rule {
    name: &'static str,
    /// Our crates on which it may depend, in builds and in tests.
    may_use: &'static [&'static str],
    /// The foreign crates on which it may depend; `None` if it may depend on any.
    libraries: Option<&'static [&'static str]>,
    /// Crates, ours or foreign, that are compiled only if a program enables a feature for them.
    optional: &'static [&'static str],
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

/// The crate that any crate may use, but only in its tests; so may a program that is itself a test.
const FOR_TESTS: &str = "dunlin-testkit";

/// Our crates, each with its rule; a crate that is not in the table is a finding.
const RULES: &[Rule] = &[
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
        libraries: Some(&["raft", "slog"]),
        optional: &["dunlin-nexus", "dunlin-sim", "dunlin-transport"],
        ..rule(
            "dunlin-replica",
            &["dunlin-wire", "dunlin-msgbuf", "dunlin-core"],
        )
    },
    Rule {
        libraries: Some(&["scc"]),
        optional: &["dunlin-nexus", "dunlin-transport"],
        ..rule(
            "dunlin-index",
            &["dunlin-wire", "dunlin-msgbuf", "dunlin-core"],
        )
    },
    Rule {
        libraries: Some(&[]),
        optional: &[
            "dunlin-local",
            "dunlin-nexus",
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
        libraries: Some(&["tower-service"]),
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
        libraries: Some(&["signal-hook", "tower-service"]),
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
    rule("xtask", &[]),
];

/// The roots of crates that forbid unsafe code.
const SAFE: &[&str] = &[
    "crates/cli/src/main.rs",
    "crates/hostile/src/main.rs",
    "crates/wire/src/lib.rs",
    "crates/core/src/lib.rs",
    "crates/packet/src/lib.rs",
    "crates/control/src/lib.rs",
    "crates/channel/src/lib.rs",
    "crates/mailbox/src/lib.rs",
    "crates/hub/src/lib.rs",
    "crates/offload/src/lib.rs",
    "crates/server/src/lib.rs",
    "crates/sim/src/lib.rs",
    "crates/scenario/src/lib.rs",
    "crates/service/src/lib.rs",
    "crates/service-macros/src/lib.rs",
    "crates/settings/src/lib.rs",
    "crates/dunlin/src/lib.rs",
    "crates/store/src/lib.rs",
    "crates/memcached/src/lib.rs",
    "crates/kv/src/lib.rs",
    "crates/replica/src/lib.rs",
    "crates/front/src/lib.rs",
    "crates/index/src/lib.rs",
    "crates/sequencer/src/lib.rs",
    "xtask/src/main.rs",
    "gopt/crates/gopt-c/src/lib.rs",
    "gopt/crates/gopt-cli/src/main.rs",
];

const fn rule(name: &'static str, may_use: &'static [&'static str]) -> Rule {
    Rule {
        name,
        may_use,
        libraries: None,
        optional: &[],
    }
}

/// Checks all dependencies; `metadata` is cargo's description of each workspace.
pub(super) fn check(metadata: &[Value]) -> anyhow::Result<Vec<Finding>> {
    let packages = packages(metadata)?;
    let names: Vec<&str> = packages
        .iter()
        .filter_map(|package| package["name"].as_str())
        .collect();
    let mut findings = Vec::new();
    for package in &packages {
        let name = package["name"].as_str().context("a package has no name")?;
        let found = |what: String| Finding::new("Cargo.toml", 0, what);
        let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
            findings.push(found(format!(
                "`{name}` is not in the crate graph of xtask tidy"
            )));
            continue;
        };
        let dependencies = package["dependencies"].as_array();
        for dependency in dependencies.context("a package has no list of dependencies")? {
            findings.extend(check_edge(rule, dependency, &names).map(found));
        }
    }
    Ok(findings)
}

/// Checks that each crate named by a rule exists.
pub(super) fn check_listed(metadata: &[Value]) -> anyhow::Result<Vec<Finding>> {
    let packages = packages(metadata)?;
    let exists = |name: &str| packages.iter().any(|package| package["name"] == name);
    let named = RULES
        .iter()
        .flat_map(|rule| rule.may_use.iter().chain([&rule.name]));
    let missing: BTreeSet<&str> = named.copied().filter(|name| !exists(name)).collect();
    let found = |name| {
        let what = format!("names the crate `{name}`, which does not exist");
        Finding::new("xtask/src/tidy/graph.rs", 0, what)
    };
    Ok(missing.into_iter().map(found).collect())
}

/// The packages of all workspaces.
fn packages(metadata: &[Value]) -> anyhow::Result<Vec<&Value>> {
    let mut packages: Vec<&Value> = Vec::new();
    for workspace in metadata {
        let members = workspace["packages"].as_array();
        packages.extend(members.context("cargo metadata lists no packages")?);
    }
    Ok(packages)
}

/// The reason why `rule`'s crate may not have this dependency, if there is one.
fn check_edge(rule: &Rule, dependency: &Value, ours: &[&str]) -> Option<String> {
    let name = dependency["name"].as_str()?;
    let is_test = dependency["kind"] == "dev";
    if name == FOR_TESTS && !rule.may_use.contains(&FOR_TESTS) {
        return (!is_test).then(|| format!("`{}` may use `{name}` in tests alone", rule.name));
    }
    // Tests of a crate may enable its own features.
    if is_test && name == rule.name {
        return None;
    }
    if rule.optional.contains(&name) {
        let allowed = is_test || dependency["optional"] == true;
        let what = format!("`{}` may use `{name}` for a feature alone", rule.name);
        return (!allowed).then_some(what);
    }
    if ours.contains(&name) {
        let allowed = rule.may_use.contains(&name);
        return (!allowed).then(|| format!("`{}` must not depend on `{name}`", rule.name));
    }
    let allowed = is_test
        || dependency["target"] == "cfg(loom)"
        || rule
            .libraries
            .is_none_or(|libraries| libraries.contains(&name));
    (!allowed).then(|| format!("`{}` must not use the library `{name}`", rule.name))
}

pub(super) fn check_forbid_unsafe(tree: &Tree) -> Vec<Finding> {
    let missing = |path: &&str| {
        let Some(file) = tree.get(path) else {
            let what = "is listed in tidy/graph.rs as free of unsafe code, and does not exist";
            return Some(Finding::new(path, 0, what));
        };
        let forbids = file
            .text
            .lines()
            .any(|line| line == "#![forbid(unsafe_code)]");
        (!forbids).then(|| Finding::new(path, 0, "lacks `#![forbid(unsafe_code)]`"))
    };
    SAFE.iter().filter_map(missing).collect()
}

#[cfg(test)]
mod tests;
