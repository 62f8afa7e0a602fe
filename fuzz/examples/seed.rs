//! Writes the golden vectors of the wire crate as inputs into the corpora, one file a vector, so
//! that a fuzzer begins with every packet type, every message and every reason to refuse one.
//!
//! `cargo run --manifest-path fuzz/Cargo.toml --example seed`, from anywhere; then minimise (see
//! README.md beside this crate).

use std::path::Path;
use std::{fs, io};

/// A file of vectors, and the corpus of the target that reads such bytes.
const SEEDS: [(&str, &str); 2] = [
    ("packets.txt", "wire_header"),
    ("control.txt", "control_message"),
];

fn main() -> io::Result<()> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (vectors, target) in SEEDS {
        let text = fs::read_to_string(fuzz.join("../crates/wire/vectors").join(vectors))?;
        let corpus = fuzz.join("corpus").join(target);
        fs::create_dir_all(&corpus)?;
        let mut name = "";
        for line in text.lines() {
            if let Some(value) = line.strip_prefix("name: ") {
                name = value;
            } else if let Some(digits) = line.strip_prefix("hex:") {
                fs::write(corpus.join(name), bytes(digits.trim())?)?;
            }
        }
    }
    Ok(())
}

fn bytes(digits: &str) -> io::Result<Vec<u8>> {
    let wrong = |_| io::Error::new(io::ErrorKind::InvalidData, "a vector is not hexadecimal");
    let places = (0..digits.len()).step_by(2);
    places
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).map_err(wrong))
        .collect()
}
