//! A difference between workspaces is found; members and comments may differ.

use super::*;

const ROOT: &str = "[workspace]\nmembers = [\"crates/*\"]\n\n[workspace.dependencies]\n\
    dunlin = { path = \"crates/dunlin\" }\nclap = \"4\"\n\n[workspace.lints.clippy]\n\
    # Why.\ntodo = \"deny\"\n";

fn findings(gopt: &str) -> Vec<String> {
    let tree = Tree::of(&[("Cargo.toml", ROOT), ("gopt/Cargo.toml", gopt)]);
    let found = check(&tree).into_iter().map(|finding| finding.to_string());
    found.collect()
}

#[test]
fn members_comments_and_crates_may_differ() {
    let other = ROOT.replace("crates/*", "gopt").replace("# Why.\n", "");
    let other = other.replace("dunlin = {", "gopt = {");
    assert_eq!(findings(&other), [""; 0]);
    let other = format!("{other}[profile.dev.package.dunlin-cli]\nopt-level = 0\n");
    assert_eq!(findings(&other), [""; 0]);
}

#[test]
fn lints_and_versions_that_differ_are_found() {
    let other = ROOT.replace("\"deny\"", "\"warn\"");
    assert_eq!(
        findings(&other),
        ["gopt/Cargo.toml: [workspace.lints.clippy] is not as in the root's Cargo.toml"]
    );
    let other = ROOT.replace("clap = \"4\"", "clap = \"3\"");
    assert_eq!(
        findings(&other),
        ["gopt/Cargo.toml: `clap` is not as in the root's Cargo.toml"]
    );
    let other = format!("{ROOT}[profile.dev]\ndebug = 0\n");
    assert_eq!(
        findings(&other),
        ["gopt/Cargo.toml: [profile.dev] is not as in the root's Cargo.toml"]
    );
}
