//! One step: a shell command with a time limit. A step that hangs is killed together with all
//! processes that it started, so that it costs the run no more than its limit.

mod cpu;

use std::fmt;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::Context;

/// The exit code of a step that cannot run here, the same as automake's.
const CANNOT_RUN: i32 = 77;

/// The check for known vulnerabilities needs a database from the network. If the database cannot be
/// fetched, the step is skipped, because no change of this tree could help.
pub(super) const ADVISORIES: &str =
    "cargo deny fetch db || exit 77; cargo deny --workspace check advisories";

/// Checks that scripts can be parsed. It does not run them, because some need programs that are not
/// installed here.
pub(super) const SCRIPTS: &str =
    "git ls-files '*.sh' .ci/run | while read -r it; do bash -n \"$it\" || exit 1; done";

/// The workspace of Dunlin's peers is separate, and no other step looks at it. This step checks it
/// but runs no measurement, because figures need an idle machine.
pub(super) const PEERS: &str = "cargo fmt --check --manifest-path \
    peers/measure/Cargo.toml && cargo clippy --locked --manifest-path \
    peers/measure/Cargo.toml --target-dir \"${CARGO_TARGET_DIR:-target}/peers\" \
    -- -D warnings";

/// The variable that names the folder for histories of the key-value service, the replicated store
/// and the sequencer.
pub(super) const HISTORIES: &str = "DUNLIN_HISTORIES";

/// The variable that makes tests of simulations run all their seeds (`testkit/src/seeds.rs`).
pub(super) const ALL_SEEDS: &str = "DUNLIN_ALL_SEEDS";

/// Checks with porcupine the histories that the tests have written.
pub(super) const PORCUPINE: &str = "[ -d \"$DUNLIN_HISTORIES\" ] || \
    { echo 'the step `test` writes the histories: run it first'; exit 1; }; \
    cd tools/porcupine && go run . \"$DUNLIN_HISTORIES\" && rm -r \"$DUNLIN_HISTORIES\"";

/// Builds the library that loads DPDK, and then runs a program that needs it.
pub(super) fn with_dpdk(script: &str) -> String {
    format!(
        "to=$(realpath -m \"${{CARGO_TARGET_DIR:-target}}\")/dpdk && \
         sh crates/dpdk/native/build.sh \"$to\" && \
         export DUNLIN_DPDK_LIBRARY=$to/libdunlin_dpdk.so && {script}"
    )
}

/// Runs the tests that need DPDK. They are compiled by the step of all tests; `planted` is the
/// option with which that step compiles.
pub(super) fn dpdk(planted: &str) -> String {
    with_dpdk(&format!(
        "cargo test --workspace{planted} --test dpdk_conformance --test device --test drivers \
         --test commands --test bench -- --ignored"
    ))
}

/// Builds a server from before metadata, and calls it. The test is compiled by the step of all
/// tests. A shallow clone does not have the server's commit, and no change of the tree helps there.
pub(super) fn old_server(planted: &str) -> String {
    format!(
        "to=$(realpath -m \"${{CARGO_TARGET_DIR:-target}}\")/old-server && \
         sh tools/old-server/build.sh \"$to\" && DUNLIN_OLD_SERVER=$to/old-server \
         cargo test --workspace{planted} --test programs -- --ignored old_server"
    )
}

/// Builds the attackers, while other steps run. The build is the same as for the tests, with
/// optimization, but also with checks that a release build leaves out; it includes the examples so
/// that the crates have the features of the tests.
pub(super) fn attackers(planted: &str) -> String {
    format!("cargo build --workspace{planted} --examples --bin dunlin-hostile --locked")
}

/// Attacks a server that a healthy client uses, and compares the client's latency in the phases of
/// the run.
pub(super) fn hostile(planted: &str) -> String {
    let build = attackers(planted);
    let program = "\"${CARGO_TARGET_DIR:-target}\"/debug/dunlin-hostile";
    format!("{build} && {program} --minutes 1")
}

/// The steps that may run at the same time as a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Company {
    /// Nothing: the step measures time.
    Nothing,
    /// Another step, which gets only the processor time that this one leaves over. This one has
    /// limits of time, and other steps may need its results.
    Leftovers,
    /// Any step that allows company: this one measures no time, and does not depend on a clock.
    Any,
}

/// The processor time that a step gets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Share {
    /// A fair share of the machine.
    Fair,
    /// The time that the others leave over: if a thread of theirs wakes, it runs at once.
    Leftovers,
}

/// The additional time for a step that runs on the leftovers.
const PATIENCE: Duration = Duration::from_secs(40 * 60);

/// The first command of a step that runs on the leftovers. The policy also counts for its children.
/// Where the kernel does not allow it, the step has the lowest priority of the usual policy.
const YIELD: &str = "chrt --idle --pid 0 $$ >/dev/null 2>&1 || true\n";

/// A named shell command.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) name: String,
    /// The command for bash, which runs in the root of the workspace.
    pub(super) script: String,
    limit: Duration,
    may_skip: bool,
    company: Company,
    /// The script runs tests by `cargo test`.
    runs_tests: bool,
    /// Variables of the script's environment.
    variables: Vec<(&'static str, PathBuf)>,
}

/// How a step ended.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Passed,
    /// It cannot run here, and that is allowed for this step.
    Skipped,
    /// These tests failed, and passed when they ran again.
    Unsteady(Vec<String>),
    /// The exit code; `None` if a signal ended it.
    Failed(Option<i32>),
    TimedOut,
}

impl Outcome {
    /// Whether the run may still pass. Only a step that may be skipped ends as `Skipped`.
    pub(super) fn is_success(&self) -> bool {
        matches!(self, Self::Passed | Self::Skipped | Self::Unsteady(_))
    }

    /// Whether the step's output explains a failure.
    pub(super) fn explains(&self) -> bool {
        !matches!(self, Self::Passed | Self::Skipped)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Skipped => f.write_str("skipped: it cannot run here"),
            Self::Unsteady(tests) => write!(f, "passed, but only AGAIN: {}", tests.join(", ")),
            Self::Failed(Some(code)) => write!(f, "FAILED with exit code {code}"),
            Self::Failed(None) => f.write_str("FAILED by a signal"),
            Self::TimedOut => f.write_str("FAILED: it took too long and was ended"),
        }
    }
}

/// A step with a limit in minutes.
pub(super) fn sh(name: impl Into<String>, minutes: u64, script: impl Into<String>) -> Step {
    let limit = Duration::from_secs(60 * minutes);
    Step {
        name: name.into(),
        script: script.into(),
        limit,
        may_skip: false,
        company: Company::Nothing,
        runs_tests: false,
        variables: Vec::new(),
    }
}

impl Step {
    /// The same step, allowed to exit with code 77 if it cannot run here.
    pub(super) fn may_skip(self) -> Self {
        Self {
            may_skip: true,
            ..self
        }
    }

    /// The same step, with other company.
    pub(super) fn beside(self, company: Company) -> Self {
        Self { company, ..self }
    }

    /// The same step, marked as a step that runs tests by `cargo test`.
    pub(super) fn of_tests(self) -> Self {
        Self {
            runs_tests: true,
            ..self
        }
    }

    /// The same step, with a variable in the environment of its script.
    pub(super) fn with(mut self, name: &'static str, value: &Path) -> Self {
        self.variables.push((name, value.to_owned()));
        self
    }

    /// The step that runs only these tests of this step, one at a time; none if this step runs no
    /// tests.
    pub(super) fn again(&self, tests: &[String]) -> Option<Self> {
        self.runs_tests.then(|| {
            let names: Vec<String> = tests.iter().map(|name| format!("'{name}'")).collect();
            let script = &self.script;
            let script = format!("{script} -- --exact --test-threads=1 {}", names.join(" "));
            Self {
                script,
                name: format!("{} again", self.name),
                variables: self.variables.clone(),
                ..*self
            }
        })
    }

    /// The steps that may run at the same time.
    pub(super) fn company(&self) -> Company {
        self.company
    }

    /// The same step in the folder of a workspace. All workspaces build into one folder, so common
    /// dependencies are compiled once.
    pub(super) fn within(self, folder: &str) -> Self {
        if folder.is_empty() {
            return self;
        }
        let Self { name, script, .. } = &self;
        Self {
            name: format!("{name} ({folder})"),
            script: format!(
                "export CARGO_TARGET_DIR=\"${{CARGO_TARGET_DIR:-$PWD/target}}\"; \
                 cd {folder}; {script}"
            ),
            ..self
        }
    }

    /// Runs the step in `root`, and returns its outcome and its processor time. Its output goes to
    /// a file. Calls `meanwhile` repeatedly until the step has ended, and once after that.
    pub(super) fn run_into(
        &self,
        root: &Path,
        output: File,
        share: Share,
        meanwhile: &mut dyn FnMut(),
    ) -> anyhow::Result<(Outcome, Duration)> {
        let mut command = self.command(root, share)?;
        command.stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().context("cannot start bash")?;
        let limit = match share {
            Share::Fair => self.limit,
            Share::Leftovers => self.limit + PATIENCE,
        };
        let (outcome, cpu) = wait(child, limit, meanwhile)?;
        meanwhile();
        let outcome = match outcome {
            Outcome::Failed(Some(CANNOT_RUN)) if self.may_skip => Outcome::Skipped,
            outcome => outcome,
        };
        Ok((outcome, cpu))
    }

    /// The command, with the path of this program in `XTASK`.
    fn command(&self, root: &Path, share: Share) -> anyhow::Result<Command> {
        let (nice, before) = match share {
            Share::Fair => ("0", ""),
            Share::Leftovers => ("19", YIELD),
        };
        let mut command = Command::new("nice");
        command
            .args(["-n", nice, "bash", "-eu", "-o", "pipefail", "-c"])
            .arg(format!("{before}{}", self.script))
            .env("XTASK", standing(std::env::current_exe()?))
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(root)
            .process_group(0);
        Ok(command)
    }
}

/// The path of a running program. If a step has rebuilt the program, the system marks the path of
/// the old file as deleted, but the new file is at the same path.
fn standing(program: PathBuf) -> PathBuf {
    let path = program
        .to_str()
        .and_then(|it| it.strip_suffix(" (deleted)"));
    path.map_or(program.clone(), PathBuf::from)
}

fn wait(
    mut child: Child,
    limit: Duration,
    meanwhile: &mut dyn FnMut(),
) -> anyhow::Result<(Outcome, Duration)> {
    let deadline = Instant::now() + limit;
    loop {
        let used = cpu::of(child.id())?;
        // Its time can be read until its status is taken, so the status is taken last.
        if used.has_ended {
            let status = child.wait()?;
            let outcome = match status.success() {
                true => Outcome::Passed,
                false => Outcome::Failed(status.code()),
            };
            return Ok((outcome, used.time));
        }
        if Instant::now() > deadline {
            // The child leads its own process group, which is named by the negative of the child's
            // id.
            let group = format!("-{}", child.id());
            Command::new("kill")
                .args(["-KILL", "--", &group])
                .status()?;
            child.wait()?;
            return Ok((Outcome::TimedOut, used.time));
        }
        meanwhile();
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests;
