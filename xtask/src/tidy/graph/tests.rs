//! Forbidden edges of the crate graph are found, of every kind.

use serde_json::json;

use super::*;

/// A package: its name, and the name and kind of each dependency.
type Package<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

/// What `check` says about these packages.
fn findings(packages: &[Package<'_>]) -> Vec<String> {
    let package = |(name, dependencies): &Package<'_>| {
        let dependencies: Vec<Value> = dependencies
            .iter()
            .map(|(name, kind)| json!({"name": name, "kind": kind, "target": null}))
            .collect();
        json!({"name": name, "dependencies": dependencies})
    };
    let packages: Vec<Value> = packages.iter().map(package).collect();
    let findings = check(&[json!({"packages": packages})]).unwrap();
    findings.into_iter().map(|finding| finding.what).collect()
}

#[test]
fn the_graph_as_designed_passes() {
    let found = findings(&[
        (
            "dunlin-wire",
            &[("zerocopy", None), ("proptest", Some("dev"))],
        ),
        ("dunlin-core", &[("dunlin-wire", None)]),
        ("dunlin-sim", &[("dunlin-core", None), ("rand", None)]),
        ("dunlin-service", &[]),
        (
            "dunlin-services",
            &[("dunlin-service", None), ("dunlin-sim", Some("dev"))],
        ),
        ("dunlin-cli", &[("dunlin-sim", None)]),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn core_may_not_use_what_stands_above_it_even_in_tests() {
    for name in [
        "dunlin-control",
        "dunlin-transport",
        "dunlin-nexus",
        "dunlin-sim",
    ] {
        for kind in [None, Some("dev"), Some("build")] {
            let found = findings(&[("dunlin-core", &[(name, kind)]), (name, &[])]);
            assert_eq!(
                found,
                [format!("`dunlin-core` must not depend on `{name}`")]
            );
        }
    }
}

#[test]
fn nothing_may_use_the_command() {
    for rule in RULES.iter().filter(|rule| rule.name != "dunlin-cli") {
        let found = findings(&[(rule.name, &[("dunlin-cli", None)]), ("dunlin-cli", &[])]);
        assert_eq!(
            found,
            [format!("`{}` must not depend on `dunlin-cli`", rule.name)]
        );
    }
}

#[test]
fn services_may_use_the_simulator_in_tests_alone() {
    let found = findings(&[
        ("dunlin-services", &[("dunlin-sim", None)]),
        ("dunlin-sim", &[]),
    ]);
    assert_eq!(found, ["`dunlin-services` must not depend on `dunlin-sim`"]);
}

#[test]
fn core_may_not_use_other_libraries() {
    let found = findings(&[("dunlin-core", &[("libc", None)])]);
    assert_eq!(found, ["`dunlin-core` must not use the library `libc`"]);
}

#[test]
fn edges_between_workspaces_are_seen() {
    let of = |name, uses: &[&str]| {
        let uses: Vec<Value> = uses.iter().map(|name| json!({"name": name})).collect();
        json!({"packages": [{"name": name, "dependencies": uses}]})
    };
    let found = check(&[of("dunlin-core", &["gopt"]), of("gopt", &["dunlin-core"])]).unwrap();
    let found: Vec<&str> = found.iter().map(|finding| &*finding.what).collect();
    assert_eq!(
        found,
        [
            "`dunlin-core` must not depend on `gopt`",
            "`gopt` must not depend on `dunlin-core`"
        ]
    );
}

#[test]
fn an_unknown_crate_is_found() {
    let found = findings(&[("dunlin-extra", &[])]);
    assert_eq!(
        found,
        ["`dunlin-extra` is not in the crate graph of xtask tidy"]
    );
}

#[test]
fn a_crate_that_allows_unsafe_code_is_found() {
    let safe = "//! Owns.\n#![forbid(unsafe_code)]\n";
    let tree = Tree::of(&[
        ("crates/core/src/lib.rs", "//! Owns.\n"),
        ("crates/wire/src/lib.rs", safe),
    ]);
    let found = check_forbid_unsafe(&tree);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].path, "crates/core/src/lib.rs");
}
