//! Builds and runs the fuzz targets of `fuzz/`. The flags are those of cargo-fuzz (Apache-2.0 or
//! MIT), which costs minutes to install and does nothing else here: the compiler of nightly counts
//! edges and comparisons for libFuzzer, and the address sanitizer and debug assertions are on.
//!
//! A run begins with the committed corpus, unpacked under `target`, and puts new inputs there too,
//! so it changes no committed file. `ci` runs each target; `fuzz/README.md` has the rest.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use crate::{corpus, workspaces};

/// The folder of the targets, a workspace of its own.
const FOLDER: &str = "fuzz";

/// Counters for libFuzzer, and the address sanitizer. One codegen unit, because the counters of
/// dead code in other units would look like code that no input reaches.
const INSTRUMENT: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    -Cllvm-args=-sanitizer-coverage-stack-depth \
    -Cllvm-args=-simplifycfg-branch-fold-threshold=0 \
    -Zsanitizer=address -Cdebug-assertions -Ccodegen-units=1 --cfg fuzzing";

/// Builds and runs fuzz targets, with nightly and the address sanitizer.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    work: Work,
}

#[derive(clap::Subcommand)]
enum Work {
    /// Builds all targets.
    Build,
    /// Fuzzes a target from its corpus.
    Run {
        target: String,
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Runs a target with each of these inputs once, for example one that made it crash.
    Replay { target: String, files: Vec<PathBuf> },
    /// Replaces the corpus of a target by those inputs, of the corpus and of earlier runs, that
    /// reach something which shorter ones do not.
    Shrink { target: String },
}

/// Carries out the command; true if the target found no fault.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<bool> {
    let home = Home::of(root)?;
    let is_success = match &args.work {
        Work::Build => home.cargo(&[])?,
        Work::Run { target, seconds } => {
            let corpus = home.unpack(target)?;
            let found = home.folder("fuzz-found", target)?;
            let limit = format!("-max_total_time={seconds}").into();
            home.target(target, &[limit, found, corpus])?
        }
        Work::Replay { target, files } => home.target(target, files)?,
        Work::Shrink { target } => {
            let corpus = home.unpack(target)?;
            let found = home.folder("fuzz-found", target)?;
            let small = home.folder("fuzz-small", target)?;
            // What an earlier run left there, which failed, is no part of the new corpus.
            std::fs::remove_dir_all(&small)?;
            std::fs::create_dir_all(&small)?;
            let merge = [PathBuf::from("-merge=1"), small.clone(), corpus, found];
            let is_success = home.target(target, &merge)?;
            if is_success {
                corpus::pack(&home.packed(target), &small)?;
                std::fs::remove_dir_all(&small).context("cannot remove the new inputs")?;
            }
            is_success
        }
    };
    Ok(is_success)
}

/// The names of all targets, sorted.
pub(crate) fn targets(root: &Path) -> anyhow::Result<Vec<String>> {
    let folder = root.join(FOLDER).join("fuzz_targets");
    let entries = std::fs::read_dir(&folder);
    let mut names = Vec::new();
    for entry in entries.with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            names.extend(stem.map(str::to_owned));
        }
    }
    names.sort();
    Ok(names)
}

/// The folders of fuzzing.
struct Home {
    /// The folder of the targets' workspace.
    fuzz: PathBuf,
    /// The folder for builds of the root's workspace.
    build: PathBuf,
}

impl Home {
    fn of(root: &Path) -> anyhow::Result<Self> {
        let build = workspaces::target_folder(root)?;
        let fuzz = root.join(FOLDER);
        Ok(Self { fuzz, build })
    }

    /// The committed corpus of a target.
    fn packed(&self, target: &str) -> PathBuf {
        self.fuzz.join("corpus").join(target).with_extension("hex")
    }

    /// A folder for the inputs of a target, made if it is missing.
    fn folder(&self, kind: &str, target: &str) -> anyhow::Result<PathBuf> {
        let folder = self.build.join(kind).join(target);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(folder)
    }

    /// Unpacks the corpus of a target; returns its folder.
    fn unpack(&self, target: &str) -> anyhow::Result<PathBuf> {
        let folder = self.build.join("fuzz-corpus").join(target);
        corpus::unpack(&self.packed(target), &folder)?;
        Ok(folder)
    }

    /// Builds and runs a target; true if it found no fault.
    fn target(&self, target: &str, arguments: &[PathBuf]) -> anyhow::Result<bool> {
        let bin = format!("--bin={target}");
        ensure!(self.cargo(&[&bin])?, "the target {target} does not build");
        // libFuzzer takes a prefix, not a folder.
        let crashes = self.folder("fuzz-crashes", target)?;
        let prefix = format!("-artifact_prefix={}/", crashes.display());
        let program = self.build.join("fuzz").join(triple()).join("release");
        let status = Command::new(program.join(target))
            .arg(prefix)
            .args(arguments)
            .status();
        Ok(status.context("cannot start the target")?.success())
    }

    /// Builds targets; true if that succeeded.
    fn cargo(&self, arguments: &[&str]) -> anyhow::Result<bool> {
        // This is not the cargo that runs xtask, because only rustup's `cargo` accepts the name of
        // a toolchain. With a triple, build scripts are built without the flags.
        let status = Command::new("cargo")
            .args(["+nightly", "build", "--release", "--locked"])
            .args(["--target", &triple(), "--manifest-path"])
            .arg(self.fuzz.join("Cargo.toml"))
            .arg("--target-dir")
            .arg(self.build.join("fuzz"))
            .args(arguments)
            .env("RUSTFLAGS", INSTRUMENT)
            .status();
        Ok(status.context("cannot start cargo")?.success())
    }
}

/// The name of this machine's target.
fn triple() -> String {
    format!("{}-unknown-linux-gnu", std::env::consts::ARCH)
}
