//! The check counts each package once, and reports a package that is compiled in two versions.

use super::*;

fn found(most: usize, tree: &str) -> Vec<String> {
    let weight = Weight { package: "p", most };
    let findings = judge(&weight, tree).into_iter();
    findings.map(|finding| finding.what).collect()
}

const TREE: &str = "p v0.1.0 (/p)\na v1.0.0\nb v1.0.0 (proc-macro)\na v1.0.0 (*)\n\nb v1.0.0\n";

#[test]
fn each_package_counts_once() {
    assert_eq!(found(3, TREE), [""; 0]);
    assert!(found(2, TREE)[0].contains("3 packages, but may compile 2"));
    assert!(found(4, TREE)[0].contains("lower its limit of 4"));
}

#[test]
fn an_engine_of_a_service_is_found() {
    let tree = format!("{TREE}raft v0.7.0\n");
    assert_eq!(
        found(4, &tree),
        ["`p` compiles `raft`: leave it to the features of services"]
    );
}

#[test]
fn a_second_version_is_found() {
    let tree = format!("{TREE}a v2.0.0\n");
    assert_eq!(found(4, &tree), ["`p` compiles 2 versions of `a`"]);
}
