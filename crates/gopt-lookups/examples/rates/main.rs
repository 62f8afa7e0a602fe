//! Prints how many look-ups a second each form reaches, at several widths.
//!
//! `rates [--mib N] [NAME …]`: tables of about N MiB (default 64, too small for true figures; take
//! several times the last-level cache), and only the look-ups that are named. One sample takes
//! about a millisecond, samples of all forms alternate, and medians are compared.
mod automata;
mod measure;
mod tables;

fn main() -> std::io::Result<()> {
    let mut mib = 64;
    let mut names = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--mib" {
            let given = arguments.next().and_then(|number| number.parse().ok());
            mib = given.ok_or(std::io::ErrorKind::InvalidInput)?;
        } else {
            names.push(argument);
        }
    }
    let is_wanted = |name: &str| names.is_empty() || names.iter().any(|wanted| wanted == name);
    tables::run(mib, is_wanted)
}
