//! Both workspaces are checked by the same steps.

use super::*;

#[test]
fn every_check_runs_in_every_workspace() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let steps = steps(&root).unwrap();
    for check in checks().into_iter().chain([test("")]) {
        let own = steps
            .iter()
            .filter(|step| step.name.starts_with(&check.name));
        let folders = own.filter(|step| step.script.contains(&check.script));
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

#[test]
fn steps_that_reuse_the_build_of_the_tests_enable_the_same_features() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let steps = steps(&root).unwrap();
    let script = |name: &str| {
        let step = steps.iter().find(|step| step.name == name);
        &step.unwrap_or_else(|| panic!("no step {name}")).script
    };
    let (_, features) = script("test").split_once(" --features ").unwrap();
    for crate_with_bugs in ["core", "store", "kv", "replica", "sequencer", "index"] {
        let feature = format!("dunlin-{crate_with_bugs}/mutants");
        assert!(features.split(',').any(|it| it == feature), "{features}");
    }
    for name in ["dpdk", "build examples", "build attackers", "hostile"] {
        let part = format!(" --workspace --features {features} ");
        assert!(script(name).contains(&part), "{name}: {}", script(name));
    }
}

#[test]
fn steps_that_measure_time_run_alone_and_tests_run_before_steps_that_need_them() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let steps = steps(&root).unwrap();
    let at = |name: &str| {
        let at = steps.iter().position(|step| step.name.starts_with(name));
        at.unwrap_or_else(|| panic!("no step {name}"))
    };
    for name in ["readme: cargo run", "hostile"] {
        assert_eq!(steps[at(name)].company(), Company::Nothing, "{name}");
    }
    let order = [
        "test",
        "dpdk",
        "porcupine",
        "build examples",
        "example typed",
    ];
    for name in order {
        assert_eq!(steps[at(name)].company(), Company::Leftovers, "{name}");
    }
    assert!(order.map(at).is_sorted());
    // The steps that run while the tests are compiled do not wait for the folder of that build.
    let early = steps.iter().filter(|step| step.company() == Company::Any);
    let early: Vec<&str> = early.take(3).map(|step| &*step.name).collect();
    assert_eq!(early, ["peers", "coverage", "miri (gopt)"]);
}
