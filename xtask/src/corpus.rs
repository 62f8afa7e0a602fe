//! The inputs with which fuzz targets begin: one file for each target, `fuzz/corpus/TARGET.hex`,
//! with one input per line in hexadecimal, shorter ones first. A fuzzer needs a folder with a file
//! for each input, so continuous integration unpacks them. A person adds the input of a crash, or
//! packs a smaller corpus; `fuzz/README.md` shows how.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

/// Inputs in a fixed order, by length first, so that a new input changes the file by one line.
type Inputs = BTreeSet<(usize, Vec<u8>)>;

/// Golden vectors, and the corpus of the target that reads such bytes.
const SEEDS: [(&str, &str); 2] = [
    ("packets.txt", "wire_header.hex"),
    ("control.txt", "control_message.hex"),
];

/// Unpacks, packs, or adds to the inputs with which fuzz targets begin.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    work: Work,
}

#[derive(clap::Subcommand)]
enum Work {
    /// Writes each input of a corpus as a file into a folder.
    Unpack { corpus: PathBuf, folder: PathBuf },
    /// Takes the files of a folder as all inputs of a corpus.
    Pack { corpus: PathBuf, folder: PathBuf },
    /// Adds files to the inputs of a corpus.
    Add {
        corpus: PathBuf,
        files: Vec<PathBuf>,
    },
    /// Adds the golden vectors of the wire crate, so that a fuzzer begins with every packet type,
    /// every message and every reason to refuse one.
    Seed,
}

/// Carries out the command. The result is true, because any failure is an error.
pub(crate) fn run(root: &Path, args: &Args) -> anyhow::Result<bool> {
    match &args.work {
        Work::Unpack { corpus, folder } => unpack(&read(corpus)?, folder)?,
        Work::Pack { corpus, folder } => write(corpus, &folder_inputs(folder)?)?,
        Work::Add { corpus, files } => {
            let new = files.iter().map(|file| input(file));
            add(corpus, new.collect::<anyhow::Result<_>>()?)?;
        }
        Work::Seed => {
            for (vectors, corpus) in SEEDS {
                let vectors = vectors_of(&root.join("crates/wire/vectors").join(vectors))?;
                add(&root.join("fuzz/corpus").join(corpus), vectors)?;
            }
        }
    }
    Ok(true)
}

fn vectors_of(file: &Path) -> anyhow::Result<Inputs> {
    let text = fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    let lines = text.lines().filter_map(|line| line.strip_prefix("hex:"));
    lines.map(|digits| sized(bytes(digits.trim())?)).collect()
}

fn add(file: &Path, new: Inputs) -> anyhow::Result<()> {
    let mut inputs = read(file)?;
    inputs.extend(new);
    write(file, &inputs)
}

fn read(file: &Path) -> anyhow::Result<Inputs> {
    let name = || format!("{}", file.display());
    let text = fs::read_to_string(file).with_context(name)?;
    let inputs = text.lines().map(|line| sized(bytes(line)?));
    inputs.collect::<anyhow::Result<_>>().with_context(name)
}

fn write(file: &Path, inputs: &Inputs) -> anyhow::Result<()> {
    ensure!(!inputs.is_empty(), "there are no inputs");
    let line = |(_, bytes): &(usize, Vec<u8>)| {
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.chain(["\n".to_owned()]).collect::<String>()
    };
    let text: String = inputs.iter().map(line).collect();
    fs::write(file, text).with_context(|| format!("{}", file.display()))
}

/// Writes a file for each input, and removes the files of an earlier corpus.
fn unpack(inputs: &Inputs, folder: &Path) -> anyhow::Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).context("cannot remove an earlier corpus")?;
    }
    fs::create_dir_all(folder).context("cannot make the folder")?;
    for (at, (_, bytes)) in inputs.iter().enumerate() {
        fs::write(folder.join(format!("{at:04}")), bytes).context("cannot write an input")?;
    }
    Ok(())
}

fn folder_inputs(folder: &Path) -> anyhow::Result<Inputs> {
    let entries = fs::read_dir(folder).with_context(|| format!("{}", folder.display()))?;
    entries.map(|entry| input(&entry?.path())).collect()
}

fn input(file: &Path) -> anyhow::Result<(usize, Vec<u8>)> {
    sized(fs::read(file).with_context(|| format!("{}", file.display()))?)
}

fn sized(bytes: Vec<u8>) -> anyhow::Result<(usize, Vec<u8>)> {
    Ok((bytes.len(), bytes))
}

fn bytes(digits: &str) -> anyhow::Result<Vec<u8>> {
    if !digits.len().is_multiple_of(2) || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        bail!("\"{digits}\" is not hexadecimal");
    }
    let places = (0..digits.len()).step_by(2);
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).context("two digits are a byte");
    places.map(byte).collect()
}

#[cfg(test)]
mod tests;
