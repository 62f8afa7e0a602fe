//! Steps with company overlap; the others run alone and in order.

use super::super::step::sh;
use super::*;

/// A step that fails unless another one runs at the same time.
fn meets(own: &str, other: &str) -> Step {
    let wait =
        format!("for _ in $(seq 500); do [ -e {other} ] && exit 0; sleep 0.01; done; exit 1");
    sh(own, 1, format!("touch {own}; {wait}"))
}

/// Prints as two test programs do, the first of which fails.
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
fn steps_with_company_run_two_at_once() {
    let folder = folder("pair");
    let steps = [
        meets("first", "second").beside(Company::Any),
        meets("second", "first").beside(Company::Any),
        sh("third", 1, "exit 3").beside(Company::Any),
    ];
    let expected = [("first", true), ("second", true), ("third", false)];
    let expected = expected.map(|(name, passed)| (name.to_owned(), passed));
    assert_eq!(outcomes(&folder, &steps), expected);
}

#[test]
fn preferred_steps_leave_only_the_rest_of_the_processors() {
    let folder = folder("preferred");
    // Prints how nice the step is, and fails unless its class is as expected.
    let class = |is: &str| format!("nice; chrt --pid $$ | grep SCHED_{is}");
    let steps = [
        sh("early", 1, class("IDLE")).beside(Company::Any),
        sh(
            "one",
            1,
            "until [ -e is_late ]; do sleep 0.01; done; touch one",
        )
        .beside(Company::Leftovers),
        sh("two", 1, format!("[ -e one ]; {}", class("OTHER"))).beside(Company::Leftovers),
        sh("late", 1, format!("touch is_late; {}", class("IDLE"))).beside(Company::Any),
        // `wait` delays `after` until the preferred steps have ended.
        sh("wait", 1, "until [ -e one ]; do sleep 0.01; done; sleep 1").beside(Company::Any),
        sh("after", 1, class("OTHER")).beside(Company::Any),
    ];
    let ran = run(&folder, &steps, &|_| ()).unwrap();
    let seen: Vec<_> = ran
        .iter()
        .map(|ran| (&ran.outcome, std::fs::read_to_string(&ran.log).unwrap()))
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    for (at, (outcome, output)) in seen.iter().enumerate() {
        assert_eq!(**outcome, Outcome::Passed, "{at}: {output}");
    }
    assert!(seen[0].1.starts_with("19\n"), "{}", seen[0].1);
}

#[test]
fn a_step_without_company_runs_alone() {
    let folder = folder("alone");
    let steps = [
        sh("before", 1, "touch runs; sleep 0.2; rm runs").beside(Company::Any),
        sh("alone", 1, "[ ! -e runs ] && touch done"),
        sh("after", 1, "[ -e done ]").beside(Company::Any),
    ];
    assert!(outcomes(&folder, &steps).iter().all(|(_, passed)| *passed));
}

#[test]
fn failed_tests_and_the_end_of_a_step_can_be_read() {
    let folder = folder("end");
    let steps = [
        sh("alone", 1, "seq 9; echo cause >&2; exit 1"),
        sh("one", 1, "echo of one; exit 1").beside(Company::Any),
        sh("tests", 1, FAILING).beside(Company::Any),
        sh("other", 1, "echo of other").beside(Company::Any),
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
