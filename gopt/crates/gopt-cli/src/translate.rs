//! The binary `gopt`: arguments, files, exit codes. The transformation itself is the library.
//!
//! Exit code 0: there is output (or help was asked for). 1: everything else, and then no file was
//! touched.

mod check;
mod output;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::Parser;

use dunlin_gopt_c::{
    DEFAULT_LANES, Diagnostic, HEADER, MAX_BYTES, MAX_LANES, Output, Severity, transform,
};

const EXAMPLES: &str = "\
Examples:
  gopt find.c -o find_fast.c              transform; 16 items in flight
  gopt find.c --batch 32 > find_fast.c    32 items in flight
  gopt find.c -o find_fast.c --check driver.c
                                          compile find.c and the output each with driver.c, run
                                          both, and write the output only if they did the same
  gopt --header > gopt.h                  the header that makes the input compile without gopt

Input:
  foreach (i, n) {                        the block runs for every i from 0 to n - 1
      struct node *node = table[hash(keys[i])];
      g_expensive(node);                  the memory at this address may be far away
      out[i] = node->value;
  }

Exit code: 0 if there is output, 1 if not.";

/// Hides the memory latency of batched look-up functions: C in, C out.
#[derive(Parser)]
#[command(name = "gopt", version, after_help = EXAMPLES)]
struct Args {
    /// The C file.
    #[arg(value_name = "IN.c", required_unless_present = "header")]
    input: Option<PathBuf>,
    /// Where the output goes; without it, standard output.
    #[arg(short, long, value_name = "OUT.c")]
    output: Option<PathBuf>,
    /// Items in flight at once.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LANES)]
    batch: usize,
    /// A C file with a `main` that calls the functions of the input and prints what they did.
    #[arg(long, value_name = "DRIVER.c")]
    check: Option<PathBuf>,
    /// A flag for the compilers of `--check`, such as `-Iinclude`; may be repeated.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    cflag: Vec<String>,
    /// Prints gopt.h and ends.
    #[arg(long)]
    header: bool,
}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no failures; the rest of clap's codes is 2 and would be ours.
            let is_failure = error.use_stderr();
            drop(error.print());
            return ExitCode::from(u8::from(is_failure));
        }
    };
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("gopt: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> anyhow::Result<()> {
    let Some(input) = args.input.as_deref().filter(|_| !args.header) else {
        return output::to_stdout(HEADER);
    };
    if args.batch == 0 || args.batch > MAX_LANES {
        bail!("--batch must be 1 to {MAX_LANES}, not {}", args.batch);
    }
    let text = read(input)?;
    let made = transformed(input, &text, args.batch)?;
    if let Some(driver) = &args.check {
        let report = check::check(input, &text, &made.text, driver, &args.cflag)?;
        eprintln!("gopt: {report}");
    }
    match &args.output {
        Some(path) => output::to_file(input, path, &made.text),
        None => output::to_stdout(&made.text),
    }
}

fn read(path: &Path) -> anyhow::Result<String> {
    let name = path.display();
    let metadata = std::fs::metadata(path).with_context(|| format!("cannot read {name}"))?;
    if metadata.is_dir() {
        bail!("{name} is a folder");
    }
    if usize::try_from(metadata.len()).map_or(true, |bytes| bytes > MAX_BYTES) {
        bail!(
            "{name} has {} bytes; more than {MAX_BYTES} are refused",
            metadata.len()
        );
    }
    let bytes = std::fs::read(path).with_context(|| format!("cannot read {name}"))?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        anyhow::anyhow!("{name}:{line}: byte {at} is not UTF-8; convert the file first")
    })
}

fn transformed(input: &Path, text: &str, lanes: usize) -> anyhow::Result<Output> {
    let name = input.display().to_string();
    match transform(text, lanes) {
        Ok(output) => {
            for warning in &output.warnings {
                eprint!("{}", warning.render(&name));
            }
            Ok(output)
        }
        Err(faults) => {
            for fault in &faults {
                eprint!("{}", fault.render(&name));
            }
            let is_reason = |fault: &&Diagnostic| fault.severity == Severity::Refused;
            let count = faults.iter().filter(is_reason).count();
            bail!(
                "{name} is refused for {count} reason{}",
                if count == 1 { "" } else { "s" }
            );
        }
    }
}
