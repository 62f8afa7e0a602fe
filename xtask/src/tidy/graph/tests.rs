//! The check finds every kind of forbidden edge in the crate graph.

use serde_json::json;

use super::*;

/// A package: its name, and the name and kind of each dependency.
type Package<'a> = (&'a str, &'a [(&'a str, Option<&'a str>)]);

/// The findings of `check` for these packages.
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
        ("dunlin-wire", &[("proptest", Some("dev"))]),
        ("dunlin-core", &[("dunlin-wire", None)]),
        ("dunlin-sim", &[("dunlin-core", None), ("rand", None)]),
        ("dunlin-service", &[]),
        ("dunlin-cli", &[("dunlin-sim", None)]),
    ]);
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn core_may_not_use_crates_above_it_even_in_tests() {
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
fn codecs_are_compiled_only_for_a_feature() {
    let uses = |optional: bool| {
        let postcard = json!({"name": "postcard", "kind": null, "optional": optional});
        let service = json!({"name": "dunlin-service", "dependencies": [postcard]});
        check(&[json!({"packages": [service]})]).unwrap()
    };
    assert_eq!(uses(true), []);
    let [found] = &uses(false)[..] else {
        panic!("a codec that everyone compiles is not found")
    };
    let what = "`dunlin-service` may use `postcard` only for a feature";
    assert_eq!(found.what, what);
}

#[test]
fn only_tests_may_use_the_crate_for_tests() {
    let uses = |kind| {
        let core = ("dunlin-core", &[(FOR_TESTS, kind)][..]);
        findings(&[core, (FOR_TESTS, &[])])
    };
    assert_eq!(uses(Some("dev")), Vec::<String>::new());
    for kind in [None, Some("build")] {
        let what = format!("`dunlin-core` may use `{FOR_TESTS}` only in tests");
        assert_eq!(uses(kind), [what]);
    }
}

#[test]
fn a_listed_crate_that_does_not_exist_is_found() {
    let packages = |names: &[&str]| {
        let packages: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        [json!({ "packages": packages })]
    };
    let mut names: Vec<&str> = RULES.iter().map(|rule| rule.name).collect();
    assert_eq!(check_listed(&packages(&names)).unwrap(), []);
    names.retain(|name| *name != "dunlin-sim");
    let found = check_listed(&packages(&names)).unwrap();
    assert_eq!(found.len(), 1);
    assert!(found[0].what.contains("`dunlin-sim`"), "{found:?}");
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
    let with = |core: &[(&str, &str)]| {
        let others = SAFE.iter().filter(|path| !path.contains("core"));
        let others: Vec<(&str, &str)> = others.map(|path| (*path, safe)).collect();
        check_forbid_unsafe(&Tree::of(&[&others[..], core].concat()))
    };
    assert_eq!(with(&[("crates/core/src/lib.rs", safe)]), []);
    for core in [&[("crates/core/src/lib.rs", "//! Owns.\n")][..], &[]] {
        let found = with(core);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].path, "crates/core/src/lib.rs");
    }
}
