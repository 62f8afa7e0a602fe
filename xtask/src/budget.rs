//! The budget: how many instructions, stores and loads an RPC costs its client and its server, over
//! shared memory in all, and over DPDK and AF_XDP in the transport. `budget.toml` has the limits.
//!
//! The example `shm_rpc` of `dunlin-transport` executes the same instructions in every run. It is
//! built once like the measured binaries (`xtask/counted`) and once like a user's program
//! (`builds.rs`). The other examples are built once: `meta_rpc` of `dunlin-local`, for typed calls,
//! and `async_rpc`, for futures; `typed_rpc` of `dunlin`; `kv_rpc` of `dunlin-kv`, `put_rpc` of
//! `dunlin-replica`, `get_rpc` of `dunlin-index` and `take_rpc` of `dunlin-sequencer`; `dpdk_rpc`
//! and `dpdk_large` of `dunlin-dpdk`, and `xdp_rpc` of `dunlin-xdp`. `rows.rs` has the situations,
//! `callgrind.rs` counts, and `table.rs` compares. Other work on the machine does not change the
//! numbers, but another compiler does.

mod builds;
mod callgrind;
mod rows;
mod table;

use std::io::{IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use builds::Build;
use callgrind::{SIDES, Sides, UNITS};
use rows::Row;
use table::{Budget, Ceilings, Extra, FILE};

const EXAMPLES: &str = "\
Examples:
  cargo xtask budget                          all rows, as continuous integration does
  cargo xtask budget --build measured batch-  the rows whose names begin with batch-
  cargo xtask budget --build dpdk             the transport over DPDK, without the driver
  cargo xtask budget --build xdp              the transport over AF_XDP, without the kernel
  cargo xtask budget --print > rows.toml      rows for budget.toml, 0.5 % above the counts
  cargo xtask budget --json | jq '.[] | select(.is_within | not)'

The profile of each row stays in target/budget; callgrind_annotate shows it by function.

Exit codes: 0, all counts are within the budget (or --print was given); 1, one is above, or it
could not be counted; 2, wrong arguments.";

/// Counts the instructions, stores and loads of an RPC, and compares them with `budget.toml`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Counts only rows whose names begin with one of these.
    #[arg(value_name = "ROW")]
    rows: Vec<String>,
    /// Counts only this build.
    #[arg(long, value_enum)]
    build: Option<Build>,
    /// Prints the counts as one JSON array, with an object for each row and side.
    #[arg(long)]
    json: bool,
    /// Prints the rows in the form of the file, and compares nothing.
    #[arg(long, conflicts_with = "json")]
    print: bool,
}

/// A row above its ceiling is counted up to this often, and the lowest counts are used. A program
/// with a real clock executes more instructions if a busy machine makes it wait.
const TRIES: usize = 5;

/// The count of one row, and its ceiling.
struct Outcome {
    build: Build,
    row: Row,
    counts: Sides<f64>,
    ceilings: Option<Ceilings>,
}

impl Outcome {
    fn is_within(&self) -> bool {
        let excesses = |ceilings: &Ceilings| {
            table::excesses(self.build, &self.row.name, &self.counts, ceilings)
        };
        self.ceilings
            .as_ref()
            .is_none_or(|ceilings| excesses(ceilings).is_empty())
    }
}

/// Counts and prints a table; true if everything is within its budget.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<bool> {
    let is_meant = |row: &Row| {
        args.rows.is_empty() || args.rows.iter().any(|begin| row.name.starts_with(begin))
    };
    let rows_of = |build: Build| -> Vec<Row> {
        let rows = rows::of(build).into_iter();
        rows.filter(|row| is_meant(row)).collect()
    };
    let mut builds: Vec<Build> = Build::ALL
        .into_iter()
        .filter(|build| args.build.is_none_or(|only| only == *build))
        .filter(|build| !rows_of(*build).is_empty())
        .collect();
    ensure!(
        !builds.is_empty(),
        "no row begins with {:?}; the rows are {}",
        args.rows,
        names(args.build.unwrap_or(Build::Measured)).join(", ")
    );
    builds.retain(|build| {
        let missing = build.missing();
        if let Some(why) = missing {
            eprintln!("[{}] is not counted: {why}", build.name());
        }
        missing.is_none()
    });
    let budget = match args.print {
        true => None,
        false => {
            let text = std::fs::read_to_string(root.join(FILE));
            Some(Budget::parse(
                &text.with_context(|| format!("cannot read {FILE}"))?,
                names,
            )?)
        }
    };
    progress("building the programs …");
    builds::build(root, &builds)?;
    let mut outcomes = Vec::new();
    for build in builds {
        let rows = rows_of(build);
        outcomes.extend(count_build(root, build, &rows, budget.as_ref(), args)?);
    }
    if args.json {
        println!(
            "{:#}",
            Value::Array(outcomes.iter().flat_map(to_json).collect())
        );
    }
    if args.print {
        return Ok(true);
    }
    Ok(judge(&outcomes, budget.as_ref(), args))
}

/// The names of the rows of a section.
fn names(build: Build) -> Vec<String> {
    rows::of(build).into_iter().map(|row| row.name).collect()
}

/// Counts each row with the program, which is built.
fn count_build(
    root: &Path,
    build: Build,
    rows: &[Row],
    budget: Option<&Budget>,
    args: &Args,
) -> anyhow::Result<Vec<Outcome>> {
    let program = build.program(root)?;
    let profiles = crate::workspaces::target_folder(root)?.join("budget");
    std::fs::create_dir_all(&profiles)
        .with_context(|| format!("cannot make {}", profiles.display()))?;
    let is_table = !args.json && !args.print;
    if is_table {
        heading(build);
    } else if args.print {
        println!("[{}]", build.name());
    }
    let mut outcomes = Vec::new();
    let at_once = std::thread::available_parallelism().map_or(1, usize::from);
    for rows in rows.chunks(at_once) {
        progress(&format!("counting {} …", rows[0].name));
        let counts = count_beside(&program, &profiles, build, rows);
        for (row, counts) in rows.iter().zip(counts) {
            let mut outcome = Outcome {
                build,
                row: row.clone(),
                counts: counts?,
                ceilings: budget
                    .map(|budget| budget.ceilings(build, &row.name))
                    .transpose()?,
            };
            for _ in 1..TRIES {
                if outcome.is_within() {
                    break;
                }
                let again = count_beside(&program, &profiles, build, std::slice::from_ref(row));
                for again in again {
                    outcome.counts = table::least(outcome.counts, again?);
                }
            }
            progress("");
            if is_table {
                println!("{}", line(&outcome));
            } else if args.print {
                println!("{}", table::file_row(&row.name, &outcome.counts));
            }
            outcomes.push(outcome);
        }
    }
    let again = |row: &Row| {
        let row = std::slice::from_ref(row);
        count_beside(&program, &profiles, build, row).remove(0)
    };
    for extra in budget.iter().flat_map(|budget| budget.extras(build)) {
        for _ in 1..TRIES {
            if excess(extra, &outcomes).is_none() {
                break;
            }
            let rows = [&extra.row, &extra.than];
            for outcome in outcomes
                .iter_mut()
                .filter(|it| rows.contains(&&it.row.name))
            {
                outcome.counts = table::least(outcome.counts, again(&outcome.row)?);
            }
        }
    }
    Ok(outcomes)
}

/// Describes a difference of two counted rows of a build that is above its bound.
fn excess(extra: &Extra, outcomes: &[Outcome]) -> Option<String> {
    let counts = |name: &str| {
        let mut outcomes = outcomes.iter().filter(|outcome| extra.is_of(outcome.build));
        let found = outcomes.find(|outcome| outcome.row.name == name);
        found.map(|outcome| &outcome.counts)
    };
    extra.excess(counts(&extra.row)?, counts(&extra.than)?)
}

/// Counts several rows at the same time.
fn count_beside(
    program: &Path,
    profiles: &Path,
    build: Build,
    rows: &[Row],
) -> Vec<anyhow::Result<Sides<f64>>> {
    let count = |row: &Row| {
        let profile = profiles.join(profile_name(build, row));
        callgrind::count(program, &row.args(), &profile, build.counted())
    };
    std::thread::scope(|scope| {
        let started: Vec<_> = rows.iter().map(|row| scope.spawn(|| count(row))).collect();
        let join = |started: std::thread::ScopedJoinHandle<'_, _>| {
            started.join().expect("counting does not panic")
        };
        started.into_iter().map(join).collect()
    })
}

fn profile_name(build: Build, row: &Row) -> String {
    format!("{}-{}.out", build.name(), row.name)
}

fn heading(build: Build) {
    println!("\n[{}]: {}", build.name(), build.about());
    println!(
        "{:15} {:>24}  {:>24}  {:>24}",
        "", "client", "server", "both"
    );
    print!("{:15}", "");
    for _ in 0..3 {
        print!(" {:>10} {:>6} {:>6} ", "instr.", "stores", "loads");
    }
    println!();
}

/// A row of the table.
fn line(outcome: &Outcome) -> String {
    let mut line = format!("{:15}", outcome.row.name);
    let [client, server] = outcome.counts;
    let both = [0, 1, 2].map(|unit| client[unit] + server[unit]);
    for [instructions, stores, loads] in [client, server, both] {
        line += &format!(" {instructions:>10.1} {stores:>6.1} {loads:>6.1} ");
    }
    line.trim_end().to_owned()
}

fn to_json(outcome: &Outcome) -> impl Iterator<Item = Value> {
    (0..SIDES.len()).map(|side| {
        let mut value = json!({
            "build": outcome.build.name(),
            "row": outcome.row.name,
            "per": outcome.row.per(),
            "side": SIDES[side],
        });
        let mut is_within = true;
        for (unit, name) in UNITS.into_iter().enumerate() {
            let count = outcome.counts[side][unit];
            let ceiling = outcome.ceilings.map(|ceilings| ceilings[side][unit]);
            is_within &= ceiling.is_none_or(|ceiling| count <= f64::from(ceiling));
            value[name] = json!({ "count": count, "ceiling": ceiling });
        }
        value["is_within"] = json!(is_within);
        value
    })
}

/// Prints the counts that are above their ceilings and the ceilings that could be lowered; true if
/// no count is above.
fn judge(outcomes: &[Outcome], budget: Option<&Budget>, args: &Args) -> bool {
    let mut is_within = true;
    let mut loose = 0;
    for outcome in outcomes {
        let Outcome {
            build,
            row,
            counts,
            ceilings,
        } = outcome;
        let Some(ceilings) = ceilings else { continue };
        loose += table::loose(counts, ceilings);
        for excess in table::excesses(*build, &row.name, counts, ceilings) {
            let profile = profile_name(*build, row);
            say(
                args,
                &format!("{excess} (callgrind_annotate target/budget/{profile})"),
            );
            is_within = false;
        }
    }
    let extras = budget.into_iter().flat_map(Budget::all_extras);
    for excess in extras.filter_map(|extra| excess(extra, outcomes)) {
        say(args, &excess);
        is_within = false;
    }
    if !is_within {
        say(
            args,
            "Find what was added. Raising a number in budget.toml needs a page in docs/decisions/ \
             that states the benefit.",
        );
    }
    if loose > 0 {
        say(
            args,
            &format!(
                "{loose} numbers of budget.toml are clearly above the counts: copy the rows of \
                 `cargo xtask budget --print` there, so that the gain is not lost again."
            ),
        );
    }
    is_within
}

/// Writes text for people: to the terminal, or to the error output if the output is JSON.
fn say(args: &Args, text: &str) {
    match args.json {
        true => eprintln!("{text}"),
        false => println!("{text}"),
    }
}

/// On a terminal, shows the current step, which the next text overwrites.
fn progress(text: &str) {
    let mut err = std::io::stderr();
    if err.is_terminal() {
        // A failure to show progress does not fail the run.
        let _ = write!(err, "\r\x1b[K{text}").and_then(|()| err.flush());
    }
}
