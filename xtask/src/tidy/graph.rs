//! The crates that each crate may depend on (`ARCHITECTURE.md`, "The crate graph"), from `cargo
//! metadata`, and the crates that forbid unsafe code (convention 9).

mod allowed;

use std::collections::BTreeSet;

use anyhow::Context;
use serde_json::Value;

use super::Finding;
use super::tree::Tree;
use allowed::{RULES, Rule};

/// The crate that any crate may use, but only in its tests; so may a program that is itself a test.
const FOR_TESTS: &str = "dunlin-testkit";

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
    "crates/keys/src/lib.rs",
    "crates/folder/src/lib.rs",
    "crates/replica/src/lib.rs",
    "crates/front/src/lib.rs",
    "crates/index/src/lib.rs",
    "crates/sequencer/src/lib.rs",
    "xtask/src/main.rs",
    "gopt/crates/gopt-c/src/lib.rs",
    "gopt/crates/gopt-cli/src/main.rs",
];

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
        Finding::new(allowed::FILE, 0, what)
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
        return (!is_test).then(|| format!("`{}` may use `{name}` only in tests", rule.name));
    }
    // Tests of a crate may enable its own features.
    if is_test && name == rule.name {
        return None;
    }
    if rule.optional.contains(&name) {
        let allowed = is_test || dependency["optional"] == true;
        let what = format!("`{}` may use `{name}` only for a feature", rule.name);
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
            let what = "is listed in tidy/graph.rs as free of unsafe code, but does not exist";
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
