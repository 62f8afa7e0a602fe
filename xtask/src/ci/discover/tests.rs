//! Examples, tests and commands in the tree become steps, and nothing else does.

use serde_json::json;

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
fn examples_over_dpdk_run_with_its_library() {
    let targets = json!([{"kind": ["example"], "name": "ring", "src_path": "ring.rs"}]);
    let metadata = |package| json!({"packages": [{"name": package, "targets": targets}]});
    for (package, has_library) in [("dunlin-dpdk", true), ("dunlin-xdp", false)] {
        let scripts = scripts(examples(&metadata(package)).unwrap());
        assert_eq!(scripts.len(), 2, "{scripts:?}");
        let names_library = scripts[1].contains("export DUNLIN_DPDK_LIBRARY=");
        assert_eq!(names_library, has_library, "{scripts:?}");
        let program = "/debug/examples/ring | \"$XTASK\" expect ring.out";
        assert!(scripts[1].ends_with(program), "{scripts:?}");
    }
}

#[test]
fn the_examples_are_built_with_the_planted_bugs_of_the_tests() {
    let package = |name: &str, features: &[&str]| {
        let features = features.iter().map(|it| ((*it).to_owned(), json!([])));
        let features: serde_json::Map<String, Value> = features.collect();
        json!({"name": name, "features": features, "dependencies": [], "targets": []})
    };
    let packages = [
        package("a", &["mutants"]),
        package("b", &["check"]),
        package("c", &["check", "mutants"]),
    ];
    let metadata = json!({"packages": packages});
    let option = planted(&metadata).unwrap();
    assert_eq!(option, " --features a/mutants,c/mutants");
    assert_eq!(
        scripts(examples(&metadata).unwrap()),
        [format!(
            "cargo build --workspace{option} --examples --locked"
        )]
    );
    let metadata = json!({"packages": [package("b", &["check"])]});
    assert_eq!(planted(&metadata).unwrap(), "");
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
fn fuzz_targets_are_found_in_the_root_and_in_crates() {
    let folder = format!("xtask-discover-{}", std::process::id());
    let root = std::env::temp_dir().join(folder);
    for (folder, name) in [
        ("fuzz", "endpoint.rs"),
        ("crates/wire/fuzz", "header.rs"),
        ("crates/wire/fuzz", "message.rs"),
        ("crates/wire/fuzz", "notes.md"),
        ("fuzz", "kv.rs"),
    ] {
        let targets = root.join(folder).join("fuzz_targets");
        std::fs::create_dir_all(&targets).unwrap();
        std::fs::write(targets.join(name), "").unwrap();
    }
    let steps = fuzz(&root).unwrap();
    std::fs::remove_dir_all(&root).unwrap();
    let names: Vec<&str> = steps.iter().map(|step| &*step.name).collect();
    assert_eq!(
        names,
        [
            "build fuzz",
            "fuzz kv",
            "fuzz endpoint",
            "build crates/wire/fuzz",
            "fuzz header",
            "fuzz message"
        ]
    );
    let scripts = scripts(steps);
    let has = |index: usize, part: &str| assert!(scripts[index].contains(part), "{scripts:?}");
    has(0, "build --fuzz-dir fuzz");
    has(1, "-max_total_time=60");
    has(
        2,
        "unpack fuzz/corpus/endpoint.hex target/fuzz-corpus/endpoint && ",
    );
    has(
        2,
        "target/fuzz-found/endpoint target/fuzz-corpus/endpoint -- -max_total_time=10",
    );
    has(3, "build --fuzz-dir crates/wire/fuzz");
    has(
        4,
        "unpack crates/wire/fuzz/corpus/header.hex target/fuzz-corpus/header ",
    );
    has(5, "fuzz run --fuzz-dir crates/wire/fuzz message ");
}

/// A renamed target would run only for a short time.
#[test]
fn the_targets_that_run_for_long_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
    let names = fuzz_targets(&root).unwrap();
    assert!(
        LONG_FUZZ
            .iter()
            .all(|long| names.iter().any(|name| name == long))
    );
}

#[test]
fn the_program_of_a_command_is_built_as_the_command_builds_it() {
    let build = |script: &str| build_of(&sh("readme", 1, script)).map(|step| step.script);
    let built = build("cargo run --release --no-default-features -- bench --release");
    assert_eq!(
        built.as_deref(),
        Some("cargo build --release --no-default-features")
    );
    assert_eq!(build("cargo run").as_deref(), Some("cargo build"));
    assert_eq!(build("cargo test --workspace"), None);
}
