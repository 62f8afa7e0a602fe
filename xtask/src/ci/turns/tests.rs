//! Untimed steps overlap; the others run alone and in order.

use super::super::step::sh;
use super::*;

/// A step that fails unless another one runs at the same time.
fn meets(own: &str, other: &str) -> Step {
    let wait =
        format!("for _ in $(seq 500); do [ -e {other} ] && exit 0; sleep 0.01; done; exit 1");
    sh(own, 1, format!("touch {own}; {wait}"))
}

/// Prints as two test programs do, of which the first fails.
const FAILING: &str =
    "printf 'a\\nfailures:\\nA\\ntest result: FAILED\\nb\\nmore\\nend\\n'; exit 1";

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
    let ran = run(folder, steps, &|_| ()).unwrap();
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
fn failed_tests_and_the_end_of_a_step_can_be_read() {
    let folder = folder("end");
    let steps = [
        sh("alone", 1, "seq 9; echo cause >&2; exit 1"),
        sh("one", 1, "echo of one; exit 1").untimed(),
        sh("tests", 1, FAILING).untimed(),
        sh("other", 1, "echo of other").untimed(),
    ];
    let ran = run(&folder, &steps, &|_| ()).unwrap();
    let ends = ran.iter().map(|ran| ran.telling_lines(2).unwrap());
    let ends: Vec<String> = ends.collect();
    std::fs::remove_dir_all(&folder).unwrap();
    let tests = "failures:\nA\nmore\nend";
    assert_eq!(ends, ["9\ncause", "of one", tests, "of other"]);
}

/// Prints as a failed test program does, unless it runs again.
const ONCE: &str = "again() { if [ $# = 0 ]; then echo 'test a::b ... FAILED'; exit 101; fi; \
     [ \"$*\" = '-- --exact --test-threads=1 a::b' ]; }; again";

#[test]
fn few_failed_tests_run_again() {
    let folder = folder("again");
    let all = ONCE
        .replace("echo", "for it in 1 2 3 4; do echo")
        .replace("; exit", "; done; exit");
    let steps = [
        sh("unsteady", 1, ONCE).of_tests(),
        sh("no tests", 1, ONCE),
        sh("many", 1, all).of_tests(),
        sh("broken", 1, "echo 'test a::b ... FAILED'; exit 1").of_tests(),
    ];
    let ran = run(&folder, &steps, &|_| ()).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    let ends: Vec<&Outcome> = ran.iter().map(|ran| &ran.outcome).collect();
    let unsteady = Outcome::Unsteady(vec!["a::b".to_owned()]);
    let failed = |code| Outcome::Failed(Some(code));
    assert_eq!(ends, [&unsteady, &failed(101), &failed(101), &failed(1)]);
}
