//! A step passes, fails or times out, and leaves nothing running.

use super::*;

fn outcome(script: &str, limit: Duration) -> Outcome {
    let step = Step {
        limit,
        ..sh("test", 1, script)
    };
    run(&step)
}

fn run(step: &Step) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = File::create("/dev/null").unwrap();
    step.run_into(root, output, Share::Fair, &mut || ())
        .unwrap()
        .0
}

#[test]
fn exit_codes_decide() {
    let limit = Duration::from_secs(60);
    assert_eq!(outcome("true", limit), Outcome::Passed);
    assert!(Outcome::Passed.is_success());
    assert!(!Outcome::TimedOut.is_success());
    assert!(!outcome("exit 77", limit).is_success());
    assert_eq!(outcome("exit 3", limit), Outcome::Failed(Some(3)));
    assert_eq!(outcome("false; true", limit), Outcome::Failed(Some(1)));
    assert_eq!(outcome("false | true", limit), Outcome::Failed(Some(1)));
    assert_eq!(outcome("kill -KILL $$", limit), Outcome::Failed(None));
}

#[test]
fn only_a_step_that_may_be_skipped_is_skipped() {
    let outcome = |step: Step| run(&step);
    assert_eq!(outcome(sh("test", 1, "exit 77")), Outcome::Failed(Some(77)));
    let skipped = outcome(sh("test", 1, "exit 77").may_skip());
    assert_eq!(skipped, Outcome::Skipped);
    assert!(
        skipped.is_success(),
        "a step that cannot run here is no failure"
    );
    assert_eq!(
        outcome(sh("test", 1, "exit 78").may_skip()),
        Outcome::Failed(Some(78))
    );
}

#[test]
fn a_step_that_hangs_is_ended_with_its_children() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/xtask-hang.pid");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let script = format!("sleep 600 & echo $! > '{}'; wait", file.display());
    assert_eq!(
        outcome(&script, Duration::from_millis(500)),
        Outcome::TimedOut
    );
    let pid = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    // A killed process ends soon. After that it does not exist, or is a zombie for which its parent
    // has not waited yet.
    let stat = format!("/proc/{}/stat", pid.trim());
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
        assert!(
            Instant::now() < deadline,
            "process {} still runs",
            pid.trim()
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_program_that_was_built_anew_is_found_at_its_path() {
    let standing = |path: &str| standing(PathBuf::from(path));
    assert_eq!(standing("/a/xtask (deleted)"), Path::new("/a/xtask"));
    assert_eq!(standing("/a/xtask"), Path::new("/a/xtask"));
}

#[test]
fn the_processor_time_of_children_counts() {
    // The loop runs in a child of the step's shell, and the pause needs no processor.
    let count = "i=0; while [ $i -lt 50000 ]; do i=$((i + 1)); done";
    let step = sh("test", 1, format!("sleep 1; bash -c '{count}'"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = File::create("/dev/null").unwrap();
    let (outcome, cpu) = step
        .run_into(root, output, Share::Fair, &mut || ())
        .unwrap();
    assert_eq!(outcome, Outcome::Passed);
    assert!(cpu >= Duration::from_millis(20), "{cpu:?}");
    assert!(cpu < Duration::from_millis(1000), "{cpu:?}");
}
