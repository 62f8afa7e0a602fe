//! Chores of the workspaces: `cargo xtask tidy` checks the conventions of `STYLE.md`, `seeds` runs
//! the simulator, `hostile` attacks a server, `budget` counts what an RPC costs, `coverage` finds
//! code that no test reaches, `corpus` packs the inputs of fuzz targets, `expect` compares the
//! output of an example, and `ci` runs every step of continuous integration. `.ci/run` installs the
//! tools that these need and calls `ci`.
#![forbid(unsafe_code)]

mod budget;
mod ci;
mod corpus;
mod coverage;
mod expect;
mod hostile;
mod seeds;
mod tidy;
mod workspaces;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(
    name = "cargo xtask",
    about = "Chores of the Dunlin workspace",
    version
)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    Tidy(tidy::Args),
    /// Runs simulated clusters, one per seed, and finds planted bugs; `seeds --help` has the
    /// details.
    #[command(disable_help_flag = true)]
    Seeds(seeds::Args),
    Budget(budget::Args),
    /// Attacks a server while a healthy client uses it; `hostile --help` has the details.
    #[command(disable_help_flag = true)]
    Hostile(hostile::Args),
    /// Runs the tests of the receive path and reports the parts of it that they do not reach.
    Coverage,
    /// Runs the steps of continuous integration, with the time each takes.
    Ci(ci::Args),
    Expect(expect::Args),
    Corpus(corpus::Args),
}

fn main() -> ExitCode {
    let outcome = root().and_then(|root| run(&root, Args::parse().chore));
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(root: &Path, chore: Chore) -> anyhow::Result<ExitCode> {
    let is_well = match chore {
        Chore::Tidy(args) => tidy::run(root, &args),
        Chore::Seeds(args) => seeds::run(root, &args),
        Chore::Budget(args) => budget::run(root, &args),
        Chore::Hostile(args) => return Ok(hostile::run(root, &args)?.into()),
        Chore::Coverage => coverage::run(root),
        Chore::Ci(args) => ci::run(root, &args),
        Chore::Expect(args) => expect::run(&args),
        Chore::Corpus(args) => corpus::run(root, &args),
    }?;
    Ok(match is_well {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// The root of the workspace: the parent of this crate.
fn root() -> anyhow::Result<PathBuf> {
    let parent = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    Ok(parent
        .context("xtask stands inside the workspace")?
        .to_path_buf())
}
