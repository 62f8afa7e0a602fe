//! The check finds a part without tests of its own, and tests that need more than the part.

use super::*;

const PART: Part = Part {
    path: "crates/core/src/pacer.rs",
    values: &["Paced"],
    owners: &[],
};

const FOLDER: Part = Part {
    path: "crates/core/src/pacer",
    ..PART
};

const SOURCE: &str = "pub(crate) struct Pacer { at: u8 } pub struct Paced; struct Inner;";

const GOOD: &str = "use super::*; #[test] fn it_paces() { let pacer = Pacer::default(); }";

/// The findings for a part whose tests are this text.
fn found(part: Part, tests: &[(&str, &str)]) -> Vec<String> {
    let mut files = vec![("crates/core/src/pacer.rs", SOURCE)];
    files.extend(tests);
    let findings = check(&Tree::of(&files), &[part]);
    findings.iter().map(Finding::to_string).collect()
}

#[test]
fn a_part_without_tests_is_found() {
    let none = ["crates/core/src/pacer.rs: is a part, and no test in \
                 crates/core/src/pacer builds one of its types"];
    assert_eq!(found(PART, &[]), none);
    for elsewhere in [
        "crates/core/src/tests.rs",
        "crates/core/src/pacers/tests.rs",
        "crates/core/tests/pacer.rs",
        "crates/core/src/pacer/wheel.rs",
    ] {
        assert_eq!(found(PART, &[(elsewhere, GOOD)]), none, "{elsewhere}");
    }
    for empty in [
        "",
        "fn it_paces() { Pacer::default() }",
        "#[test] fn it_paces() { Paced::default(); Inner::default(); }",
        "/// Builds a `Pacer`.\n#[test] fn it_paces() {}",
        "#[test] fn",
    ] {
        assert_eq!(
            found(PART, &[("crates/core/src/pacer/tests.rs", empty)]).len(),
            1,
            "{empty}"
        );
    }
}

#[test]
fn tests_in_the_folder_of_a_part_count() {
    for place in ["tests.rs", "tests/turns.rs", "wheel/tests.rs"] {
        let path = format!("crates/core/src/pacer/{place}");
        let of_property = "proptest! { #[test] fn it_paces(a in 0..9) { Pacer::new(a); } }";
        for tests in [GOOD, of_property] {
            assert_eq!(found(PART, &[(&path, tests)]), [""; 0], "{path}");
            assert_eq!(found(FOLDER, &[(&path, tests)]), [""; 0], "{path}");
        }
    }
}

#[test]
fn a_test_that_names_an_endpoint_or_a_world_is_found() {
    for world in [
        "use dunlin_testkit::clock::Clock;",
        "fn build() -> World { World::new(|world| world.run()).into() }",
        "use crate::protocol::Core;",
        "use crate::endpoint::transmit::Frame;",
        "use crate::{handle, endpoint::*};",
        "use crate::endpoint;",
        "proptest! { #[test] fn calls(a in 0..9) { assert!(Rpc::new(a).is_ok()); } }",
    ] {
        let tests = format!("{GOOD}\n{world}");
        let found = found(PART, &[("crates/core/src/pacer/tests.rs", &tests)]);
        let place = "crates/core/src/pacer/tests.rs:2: `";
        assert!(found[0].starts_with(place), "{world}: {found:?}");
    }
    let other_words = "/// An `Rpc` of the endpoint.\nfn make(endpoint: u8) -> Peer { \
                       Peer { endpoint: Some(endpoint), name: \"World\" } }";
    let tests = format!("{GOOD}\n{other_words}");
    let found = found(PART, &[("crates/core/src/pacer/tests.rs", &tests)]);
    assert_eq!(found, [""; 0]);
}
