//! Examples, tests and commands in the tree become steps, and nothing else does.

use serde_json::json;

use super::super::step::Outcome;
use super::*;

fn scripts(steps: Vec<Step>) -> Vec<String> {
    steps.into_iter().map(|step| step.script).collect()
}

#[test]
fn commands_of_a_page_are_its_shell_lines() {
    let page = "# A\n```sh\ngit clone x\ncd x\n# comment\ncargo run -- bench \\\n  --runs 5\n\
                cargo test\n```\ntext\n```rust\nfn f() {}\n```\n```text\nout\n```\n";
    assert_eq!(
        commands(page),
        ["cargo run -- bench --runs 5", "cargo test"]
    );
}

#[test]
fn examples_and_loom_tests_are_found_by_crate() {
    let metadata = json!({"workspace_root": "/a", "packages": [
        {"name": "a", "dependencies": [{"name": "loom"}], "targets": [{"kind": ["lib"]}]},
        {"name": "b", "dependencies": [{"name": "libc"}],
         "targets": [{"kind": ["example"], "name": "hello", "src_path": "/a/b/hello.rs"}]},
    ]});
    assert_eq!(
        scripts(examples(&metadata).unwrap()),
        [
            "cargo build --workspace --examples --locked",
            "\"${CARGO_TARGET_DIR:-target}\"/debug/examples/hello | \
             \"$XTASK\" expect b/hello.out"
        ]
    );
    assert_eq!(
        scripts(loom(&metadata).unwrap()),
        ["RUSTFLAGS='--cfg loom' cargo test --locked -p a --lib loom"]
    );
}

#[test]
fn a_client_runs_beside_its_server_and_the_server_alone_does_not() {
    let example = |name| json!({"kind": ["example"], "name": name, "src_path": name});
    let targets = ["hello_client", "hello_server", "lone_server"].map(example);
    let metadata = json!({"packages": [{"name": "a", "dependencies": [], "targets": targets}]});
    let scripts = scripts(examples(&metadata).unwrap());
    assert_eq!(scripts.len(), 3, "{scripts:?}");
    assert!(scripts[1].contains("hello_server & ") && scripts[1].contains("hello_client | "));
    assert!(scripts[2].contains("examples/lone_server | "));
}

#[test]
fn fuzz_targets_are_found_and_run_in_pairs() {
    let folder = format!("xtask-discover-{}", std::process::id());
    let root = std::env::temp_dir().join(folder);
    let targets = root.join("fuzz/fuzz_targets");
    std::fs::create_dir_all(&targets).unwrap();
    for name in ["ring.rs", "endpoint.rs", "header.rs", "notes.md"] {
        std::fs::write(targets.join(name), "").unwrap();
    }
    let steps = fuzz(&root).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let names: Vec<&str> = steps.iter().map(|step| &*step.name).collect();
    assert_eq!(names, ["build fuzz", "fuzz endpoint, header", "fuzz ring"]);
    assert!(steps[1].script.contains("fuzz run header --seconds 20) & "));
}

#[test]
fn what_runs_beside_each_other_fails_with_each_of_them() {
    let run = |scripts: &[&str]| {
        let scripts = scripts.iter().map(|it| (*it).to_owned()).collect();
        let step = sh("both", 1, beside(scripts));
        let output = std::fs::File::create("/dev/null").unwrap();
        step.run_into(Path::new("."), output, &mut || ()).unwrap().0
    };
    assert_eq!(run(&["true", "true"]), Outcome::Passed);
    assert_eq!(run(&["exit 3", "true"]), Outcome::Failed(Some(3)));
    assert_eq!(run(&["true", "exit 4"]), Outcome::Failed(Some(4)));
    // The commands run at the same time: the first ends only once the second has begun.
    let folder = std::env::temp_dir().join(format!("xtask-beside-{}", std::process::id()));
    let waits = format!("until [ -d {0} ]; do sleep 0.01; done", folder.display());
    let makes = format!("mkdir {}", folder.display());
    assert_eq!(run(&[&waits, &makes]), Outcome::Passed);
    std::fs::remove_dir(&folder).unwrap();
}
