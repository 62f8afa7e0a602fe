//! Compiling and running C programs, for the tests of this crate.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// A folder of one test, removed at its end.
pub(crate) struct Folder(PathBuf);

/// The output and the exit of a program.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Ran {
    pub(crate) stdout: String,
    pub(crate) code: Option<i32>,
}

/// The compilers: gcc, which must be installed, and clang if it is. Where every test must run, both
/// must be installed.
///
/// # Panics
/// If `DUNLIN_NO_SKIP` is 1, and there is no clang.
pub(crate) fn compilers() -> Vec<&'static str> {
    let version = Command::new("clang")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if version.is_ok_and(|status| status.success()) {
        return vec!["gcc", "clang"];
    }
    let may_lack = std::env::var_os("DUNLIN_NO_SKIP").is_none_or(|value| value != "1");
    assert!(may_lack, "DUNLIN_NO_SKIP is set, and there is no clang");
    println!("skipped: there is no clang");
    vec!["gcc"]
}

impl Folder {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("gopt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder can be made");
        Self(path)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Warnings are errors.
    pub(crate) const STRICT: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

    /// Compiles a whole program and runs it.
    pub(crate) fn run(&self, compiler: &str, flags: &[&str], name: &str, text: &str) -> Ran {
        let source = self.0.join(format!("{name}.c"));
        let program = self.0.join(format!("{name}-{compiler}"));
        std::fs::write(&source, text).expect("a file can be written");
        let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/include");
        let mut command = Command::new(compiler);
        command.args(["-O2", include]).args(flags).arg("-o");
        let compiled = output(command.arg(&program).arg(&source));
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(
            compiled.status.success(),
            "{compiler} on {name}:\n{said}\n{text}"
        );
        let ran = output(&mut Command::new(&program));
        Ran {
            stdout: String::from_utf8(ran.stdout).expect("the programs print ASCII"),
            code: ran.status.code(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // If the test fails, its programs stay for inspection.
        if !std::thread::panicking() {
            drop(std::fs::remove_dir_all(&self.0));
        }
    }
}

fn output(command: &mut Command) -> Output {
    command
        .stdin(Stdio::null())
        .output()
        .expect("the program can be started")
}
