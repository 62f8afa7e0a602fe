//! `gopt IN.c`: arguments and files. The library `gopt_c` does the transformation. If it fails, no
//! file is changed.

mod check;
mod output;
mod preprocess;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use gopt_c::{
    DEFAULT_LANES, Diagnostic, HEADER, MAX_BYTES, MAX_LANES, Output, Severity, transform,
};

/// The help below the options.
pub(crate) const EXAMPLES: &str = "\
Examples:
  gopt find.c -o find_fast.c              transform; 16 items in flight
  gopt find.c --batch 32 > find_fast.c    32 items in flight
  gopt find.c -o find_fast.c --check driver.c
                                          compile find.c and the output each with driver.c, run
                                          both, and write the output only if they did the same
  gopt find.c -o find_fast.c --preprocess --cflag=-Iinclude
                                          run the C preprocessor first; messages name find.c
  gopt find.c -o find_fast.c --strict     refuse instead of warning, for builds
  gopt --header > gopt.h                  the header that makes the input compile without gopt
  gopt bench --help                       the help of the other command

Input:
  foreach (i, n) {                        the block runs for every i from 0 to n - 1
      struct node *node = table[hash(keys[i])];
      g_expensive(node);                  the memory at this address may be far away
      out[i] = node->value;
  }

Exit codes: 0, there is output; 1, there is none; 2, wrong usage; 130, Ctrl-C.";

/// The arguments of `gopt IN.c`.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Args {
    /// The C file.
    #[arg(value_name = "IN.c", required_unless_present = "header")]
    input: Option<PathBuf>,
    /// Where the output goes; by default, to the standard output.
    #[arg(short, long, value_name = "OUT.c")]
    output: Option<PathBuf>,
    /// Items in flight at once.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_LANES, value_parser = lanes)]
    batch: usize,
    /// A C file with a `main` that calls the functions of the input and prints what they did.
    #[arg(long, value_name = "DRIVER.c")]
    check: Option<PathBuf>,
    /// Runs the C preprocessor first; needs `cc`, or the compiler that CC names.
    #[arg(long)]
    preprocess: bool,
    /// A flag for the compilers of --check and --preprocess, such as `-Iinclude`; can be repeated.
    #[arg(long, value_name = "FLAG", allow_hyphen_values = true)]
    cflag: Vec<String>,
    /// Refuses the input where it would otherwise warn.
    #[arg(long)]
    strict: bool,
    /// Prints gopt.h and ends.
    #[arg(long)]
    header: bool,
}

/// Transforms a file, or prints the header.
///
/// # Errors
/// The input cannot be read or is refused; the output cannot be written; or, under `--check`,
/// original and result behave differently.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let Some(input) = args.input.as_deref().filter(|_| !args.header) else {
        return output::to_stdout(HEADER);
    };
    let mut text = read(input)?;
    if args.preprocess {
        text = preprocess::preprocess(input, &args.cflag)?;
    }
    let made = transformed(input, &text, args)?;
    if let Some(driver) = &args.check {
        let only = args.preprocess.then(preprocess::compiler);
        let only = only.as_deref();
        let report = check::check(input, &text, &made.text, driver, &args.cflag, only)?;
        eprintln!("gopt: {report}");
    }
    match &args.output {
        Some(path) => output::to_file(input, path, &made.text),
        None => output::to_stdout(&made.text),
    }
}

fn lanes(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    let is_possible = |lanes: &usize| (1..=MAX_LANES).contains(lanes);
    number
        .filter(is_possible)
        .ok_or_else(|| format!("not a number between 1 and {MAX_LANES}"))
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

fn transformed(input: &Path, text: &str, args: &Args) -> anyhow::Result<Output> {
    let name = input.display().to_string();
    match transform(text, args.batch) {
        Ok(output) => {
            for warning in &output.warnings {
                eprint!("{}", warning.render(&name));
            }
            ensure!(
                !args.strict || output.warnings.is_empty(),
                "{name} is refused because of --strict: {} of the above",
                output.warnings.len()
            );
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
