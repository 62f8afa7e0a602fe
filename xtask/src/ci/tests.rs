//! Both workspaces are checked by the same steps.

use super::*;

#[test]
fn every_check_runs_in_every_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let steps = steps(&root).unwrap();
    for check in checks().into_iter().chain([test()]) {
        let own = steps
            .iter()
            .filter(|step| step.name.starts_with(&check.name));
        let folders = own.filter(|step| step.script.ends_with(&check.script));
        assert_eq!(folders.count(), FOLDERS.len(), "{}", check.name);
    }
    let names: Vec<&str> = steps.iter().map(|step| &*step.name).collect();
    assert!(names.contains(&"miri (gopt)"), "{names:?}");
    // The README's command for the tests adds no second step.
    let tests = steps
        .iter()
        .filter(|step| step.script.starts_with("cargo test --workspace"));
    assert_eq!(tests.count(), 1, "{names:?}");
}
