//! The steps of continuous integration, in order, each with its time limit. `.ci/run` installs
//! their tools and calls this; a person can run a single step with `--only`.
//!
//! Every step runs even if an earlier one failed, so that one run shows all failures. Steps that
//! measure no time also run while others do (`turns.rs`): many steps keep only one processor busy.

mod discover;
mod step;
mod turns;

use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use step::{Company, HISTORIES, Step, sh};
use turns::Ran;

use crate::workspaces::{self, FOLDERS};

/// All steps together should take less than this on two cores. Exceeding it is not a failure,
/// because the machine may be busy.
const TOTAL: Duration = Duration::from_secs(30 * 60);

/// For each failed step, the end of a run repeats up to this many lines about failed tests and this
/// many last lines of the step's output. So the cause shows even if only the end of the log is
/// left.
const TELLING_LINES: usize = 60;

/// The arguments of `cargo xtask ci`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Runs only the steps whose name begins with this.
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
    /// Prints the steps with their commands, and runs nothing.
    #[arg(long)]
    list: bool,
}

/// Runs the steps and prints a summary; true if every step passed, or was skipped where that is
/// allowed.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<bool> {
    let mut steps = steps(root)?;
    steps.retain(|step| {
        args.only
            .as_ref()
            .is_none_or(|only| step.name.starts_with(only))
    });
    anyhow::ensure!(
        !steps.is_empty(),
        "no step has that name; --list shows them"
    );
    if args.list {
        steps
            .iter()
            .for_each(|step| println!("{:<28} {}", step.name, step.script));
        return Ok(true);
    }
    let begin = Instant::now();
    let show = |output: &[u8]| {
        let mut out = std::io::stdout().lock();
        // The step has not failed if the reader has closed the pipe.
        let _ = out.write_all(output).and_then(|()| out.flush());
    };
    let ran = turns::run(root, &steps, &show)?;
    println!("\n=== summary: time, processor time");
    let row = |took: Duration, cpu: Duration| {
        format!(
            "{:>7.1} s {:>7.1} s ",
            took.as_secs_f64(),
            cpu.as_secs_f64()
        )
    };
    for Ran {
        step,
        outcome,
        took,
        cpu,
        ..
    } in &ran
    {
        println!("{} {:<28} {outcome}", row(*took, *cpu), step.name);
    }
    let total = begin.elapsed();
    println!("{} in all", row(total, ran.iter().map(|ran| ran.cpu).sum()));
    if total > TOTAL {
        println!(
            "that is more than the {} s that it should take",
            TOTAL.as_secs()
        );
    }
    for ran in ran.iter().filter(|ran| ran.outcome.explains()) {
        println!("\n=== the failure of {}", ran.step.name);
        println!("{}", ran.telling_lines(TELLING_LINES)?);
    }
    Ok(ran.iter().all(|ran| ran.outcome.is_success()))
}

/// The steps, in order. A new step is one line. Its limit is there for hangs: on a machine three
/// times as slow as usual the step still passes.
fn steps(root: &Path) -> anyhow::Result<Vec<Step>> {
    let planted = discover::planted(&workspaces::metadata(root, "")?)?;
    let histories = workspaces::target_folder(root)?.join("ci/histories");
    let mut steps = vec![sh("tidy", 5, "cargo xtask tidy")];
    for folder in FOLDERS {
        let planted = discover::planted(&workspaces::metadata(root, folder)?)?;
        let test = test(&planted).with(HISTORIES, &histories);
        let test = test.with(step::ALL_SEEDS, Path::new("1"));
        steps.push(test.within(folder));
    }
    steps.push(sh("dpdk", 4, step::dpdk(&planted)));
    steps.push(sh("old server", 10, step::old_server(&planted)).may_skip());
    steps.push(sh("porcupine", 5, step::PORCUPINE).with(HISTORIES, &histories));
    for folder in FOLDERS {
        let examples = discover::examples(&workspaces::metadata(root, folder)?)?;
        steps.extend(examples.into_iter().map(|step| step.within(folder)));
    }
    steps.push(sh("build attackers", 10, step::attackers(&planted)));
    steps = beside(Company::Leftovers, steps).collect();
    let mut untimed = untimed();
    for folder in FOLDERS {
        let readme = discover::readme(&root.join(folder))?;
        let builds = readme.iter().filter_map(discover::build_of);
        untimed.extend(builds.map(|step| step.within(folder)));
        untimed.extend(checks().into_iter().map(|step| step.within(folder)));
    }
    untimed.extend([
        sh(
            "format of outside",
            2,
            "cargo fmt --check --manifest-path xtask/outside/Cargo.toml",
        ),
        sh("scripts", 1, step::SCRIPTS),
        docs_of("dunlin-cli", "dunlin"),
        docs_of("gopt-cli", "gopt").within("gopt"),
    ]);
    for folder in FOLDERS {
        let loom = discover::loom(&workspaces::metadata(root, folder)?)?;
        untimed.extend(loom.into_iter().map(|step| step.within(folder)));
    }
    untimed.extend(discover::fuzz(root)?);
    steps.extend(beside(Company::Any, untimed));
    for folder in FOLDERS {
        for step in discover::readme(&root.join(folder))? {
            let step = step.within(folder);
            // The README's command for the tests is already a step, with an additional option.
            let runs_it = |other: &Step| {
                let rest = other.script.strip_prefix(&step.script);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(" --"))
            };
            if !steps.iter().any(runs_it) {
                steps.push(step);
            }
        }
    }
    steps.push(sh("hostile", 15, step::hostile(&planted)));
    Ok(steps)
}

/// The same steps, with this company.
fn beside(company: Company, steps: Vec<Step>) -> impl Iterator<Item = Step> {
    steps.into_iter().map(move |step| step.beside(company))
}

/// Runs tests with Miri, which executes one thread at a time: several tests at once would only mix
/// their steps.
const MIRI: &str =
    "RUST_TEST_THREADS=1 MIRIFLAGS=-Zmiri-disable-isolation cargo +nightly miri test";

/// Steps that measure no time, the longest first. Cargo lets only one command at a time build into
/// a folder, so the first ones, which run while the tests do, build into folders of their own; and
/// a step that compiles is followed by one that builds into another folder or runs for long.
fn untimed() -> Vec<Step> {
    vec![
        sh("peers", 15, step::PEERS),
        sh("coverage", 15, "cargo xtask coverage"),
        sh("miri", 15, "cargo +nightly miri test -p gopt --tests").within("gopt"),
        sh("budget", 15, "cargo xtask budget"),
        sh("seeds", 20, "cargo xtask seeds --count 2000"),
        sh(
            "differential",
            15,
            "cargo xtask seeds --differential --count 1000",
        ),
        sh("mutants", 15, "cargo xtask seeds --mutants"),
        sh(
            "congestion",
            15,
            // This uses the features of `seeds`, so that the simulator is compiled once for both.
            "cargo run --release --package dunlin-sim --features mutants --bin congestion \
             -- --short --threads 2",
        ),
        sh(
            "channels",
            15,
            "cargo xtask seeds --channel --count 10000 --threads 2 && \
             cargo xtask seeds --channel --mutants && \
             cargo xtask seeds --drains --count 25",
        ),
        sh(
            "miri",
            15,
            format!("{MIRI} -p dunlin-msgbuf --lib threads_may_drop"),
        ),
        sh(
            "miri shm",
            15,
            format!(
                "{MIRI} -p dunlin-transport --lib -- shm::copy shm::ring::lent \
                 shm::ring::tests shm::rx::shorts shm::rx::longs --skip any_ --skip behaves_"
            ),
        ),
        sh(
            "miri xdp",
            15,
            format!(
                "{MIRI} -p dunlin-xdp --lib -- ring:: umem:: frames:: arrivals:: shared:: check:: \
                 --skip steering:: --skip sharing::"
            ),
        ),
    ]
}

/// The tests of a workspace, with its planted bugs, which some of them must find. A crate that
/// fails does not hide the others.
fn test(planted: &str) -> Step {
    let script = format!("cargo test --workspace --no-fail-fast{planted}");
    sh("test", 40, script).of_tests()
}

/// The pages of the crates, as a user reads them, and then together with the pages of private
/// items. The first run finds links from public pages to private items; the second one all other
/// broken links, also in the comments of private modules, which only developers read.
const DOCS: &str = "export RUSTDOCFLAGS='-D warnings'; \
     cargo doc --workspace --no-deps --locked && \
     cargo doc --workspace --no-deps --locked --document-private-items";

/// The comments of a binary whose pages `cargo doc` leaves out, because a library has its name.
fn docs_of(package: &str, binary: &str) -> Step {
    let script = format!(
        "RUSTDOCFLAGS='-D warnings' cargo rustdoc --package {package} --bin {binary} --locked \
         -- --document-private-items"
    );
    sh(format!("docs of {binary}"), 5, script)
}

/// The checks of every workspace.
fn checks() -> Vec<Step> {
    vec![
        sh(
            "clippy",
            20,
            "cargo clippy --workspace --all-targets --locked -- -D warnings",
        ),
        sh("docs", 15, DOCS),
        sh("format", 2, "cargo fmt --all --check"),
        sh(
            "deny",
            2,
            "cargo deny --workspace check bans licenses sources",
        ),
        sh("advisories", 2, step::ADVISORIES).may_skip(),
    ]
}

#[cfg(test)]
mod tests;
