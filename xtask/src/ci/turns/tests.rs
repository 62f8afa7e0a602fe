//! Untimed steps overlap; the others run alone and in order.

use super::super::step::sh;
use super::*;

/// A step that fails unless another one runs at the same time.
fn meets(own: &str, other: &str) -> Step {
    let wait =
        format!("for _ in $(seq 500); do [ -e {other} ] && exit 0; sleep 0.01; done; exit 1");
    sh(own, 1, format!("touch {own}; {wait}"))
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("xtask-turns-{}-{name}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    // `cargo metadata`, which names the folder of outputs, needs a package.
    std::fs::create_dir_all(folder.join("src")).unwrap();
    std::fs::write(folder.join("src/lib.rs"), "").unwrap();
    let manifest = "[package]\nname = \"a\"\nedition = \"2024\"\n[workspace]\n";
    std::fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    folder
}

fn outcomes(folder: &Path, steps: &[Step]) -> Vec<(String, bool)> {
    let ran = run(folder, steps).unwrap();
    let one = |ran: Ran<'_>| (ran.step.name.clone(), ran.outcome.is_success());
    let outcomes = ran.into_iter().map(one).collect();
    std::fs::remove_dir_all(folder).unwrap();
    outcomes
}

#[test]
fn untimed_steps_run_two_at_once() {
    let folder = folder("pair");
    let steps = [
        meets("first", "second").untimed(),
        meets("second", "first").untimed(),
        sh("third", 1, "exit 3").untimed(),
    ];
    let expected = [("first", true), ("second", true), ("third", false)];
    let expected = expected.map(|(name, passed)| (name.to_owned(), passed));
    assert_eq!(outcomes(&folder, &steps), expected);
}

#[test]
fn a_timed_step_runs_alone() {
    let folder = folder("alone");
    let steps = [
        sh("before", 1, "touch runs; sleep 0.2; rm runs").untimed(),
        sh("alone", 1, "[ ! -e runs ] && touch done"),
        sh("after", 1, "[ -e done ]").untimed(),
    ];
    assert!(outcomes(&folder, &steps).iter().all(|(_, passed)| *passed));
}

#[test]
fn the_end_of_a_step_that_failed_can_be_read() {
    let folder = folder("end");
    let steps = [
        sh("alone", 1, "seq 9; echo cause >&2; exit 1"),
        sh("one", 1, "echo of one; exit 1").untimed(),
        sh("other", 1, "echo of other").untimed(),
    ];
    let ran = run(&folder, &steps).unwrap();
    let ends = ran.iter().map(|ran| ran.last_lines(2).unwrap());
    let ends: Vec<String> = ends.collect();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!(ends, ["9\ncause", "of one", "of other"]);
}
