//! The compiler, with the libraries that cargo has built for this test. Called by the test.
//!
//! Cargo tells a test no paths of its libraries, and their folder also has those of other builds.
//! So the newest ones come first, and are right if a program that keeps the rules compiles with
//! them: it uses each library and each feature that the refused programs use.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The libraries that the programs name.
const LIBRARIES: [&str; 3] = ["dunlin", "prost", "zerocopy"];

/// A compiler that finds the libraries.
pub(super) struct Compiler {
    folder: PathBuf,
    /// A file for each of [`LIBRARIES`].
    files: [PathBuf; LIBRARIES.len()],
}

impl Compiler {
    /// # Panics
    /// If a program that keeps the rules compiles with no choice of the libraries.
    pub(super) fn with_libraries_of_this_test() -> Self {
        let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refused/kept.rs");
        let test = std::env::current_exe().unwrap();
        let folder = test.parent().unwrap();
        let [dunlin, prost, zerocopy] = LIBRARIES.map(|name| newest_first(folder, name));
        let mut message = "there are no libraries".to_owned();
        for dunlin in &dunlin {
            for prost in &prost {
                for zerocopy in &zerocopy {
                    let compiler = Self {
                        folder: folder.to_owned(),
                        files: [dunlin, prost, zerocopy].map(PathBuf::clone),
                    };
                    match compiler.compile(&program) {
                        Ok(()) => return compiler,
                        Err(error) => message = error,
                    }
                }
            }
        }
        panic!("a program that keeps the rules does not compile: {message}");
    }

    /// Compiles a program without making code.
    ///
    /// # Errors
    /// The compiler's message, if it refuses the program.
    pub(super) fn compile(&self, program: &Path) -> Result<(), String> {
        // The libraries name their files as seen from there.
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root.canonicalize().unwrap();
        let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
        command
            .current_dir(&root)
            .args(["--edition", "2024", "--crate-type", "bin"])
            .args([
                "--emit",
                "metadata",
                "--out-dir",
                env!("CARGO_TARGET_TMPDIR"),
            ])
            .arg("-L")
            .arg(format!("dependency={}", self.folder.display()))
            .arg(program.strip_prefix(&root).unwrap());
        for (name, file) in LIBRARIES.iter().zip(&self.files) {
            command.args(["--extern", &format!("{name}={}", file.display())]);
        }
        let output = command.output().unwrap();
        match output.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8(output.stderr).unwrap()),
        }
    }
}

/// The files of a library in all its builds.
fn newest_first(folder: &Path, name: &str) -> Vec<PathBuf> {
    let is_of_library = |file: &Path| {
        let name_of_file = file.file_name().and_then(|it| it.to_str());
        let rest = name_of_file.and_then(|it| it.strip_prefix(&format!("lib{name}-")));
        rest.is_some_and(|it| it.ends_with(".rlib"))
    };
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|it| is_of_library(it)).collect();
    let made = |file: &PathBuf| fs::metadata(file).and_then(|it| it.modified()).unwrap();
    files.sort_by_key(|file| std::cmp::Reverse(made(file)));
    files
}
