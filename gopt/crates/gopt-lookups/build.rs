//! Compiles the look-ups in C: gives each file to gopt once for every width, and makes one
//! translation unit for each look-up and shape, with a list of its forms.
//!
//! If the tool refuses a file, the build ends with the tool's messages.

#[path = "src/c/widths.rs"]
#[expect(unreachable_pub, reason = "the library shows it")]
mod widths;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use widths::WIDTHS;

/// The files in `c` that have marks.
const LOOKUPS: [&str; 6] = ["pointer-chasing", "cuckoo", "ipv4", "ipv6", "mica", "btree"];

/// Names of shapes, and the definitions that select them.
const SHAPES: [(&str, &str); 2] = [("tight", ""), ("handler", "#define HANDLER\n")];

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=c");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(folder.join("gopt.h"), gopt_c::HEADER)?;
    let mut build = cc::Build::new();
    build
        .std("gnu11")
        .opt_level(3)
        .warnings(true)
        .extra_warnings(true);
    build.include("c").include(&folder);
    if is_x86_64_v3() {
        build.flag("-march=x86-64-v3");
    }
    for lookup in LOOKUPS {
        let path = Path::new("c").join(format!("{lookup}.c"));
        let text = fs::read_to_string(&path)?;
        for width in WIDTHS {
            let transformed = transform(&path, &text, width);
            fs::write(folder.join(format!("{lookup}-{width}.c")), transformed)?;
        }
        for (shape, define) in SHAPES {
            let unit = folder.join(format!("{lookup}-{shape}.c"));
            fs::write(&unit, translation_unit(lookup, shape, define))?;
            build.file(unit);
        }
    }
    build.file("c/aho-corasick.c");
    build.compile("gopt_lookups_in_c");
    Ok(())
}

/// Whether x86-64-v3 is the baseline. If the workspace compiles Rust for these processors, C must
/// be compiled for them too: otherwise the two could not be compared.
fn is_x86_64_v3() -> bool {
    let features = env::var("CARGO_CFG_TARGET_FEATURE").unwrap_or_default();
    let has = |name| features.split(',').any(|feature| feature == name);
    ["avx2", "bmi1", "bmi2", "fma", "lzcnt", "movbe"]
        .into_iter()
        .all(has)
}

fn transform(path: &Path, text: &str, width: usize) -> String {
    match gopt_c::transform(text, width) {
        Ok(output) if output.warnings.is_empty() => output.text,
        Ok(output) => refuse(path, &output.warnings),
        Err(faults) => refuse(path, &faults),
    }
}

fn refuse(path: &Path, said: &[gopt_c::Diagnostic]) -> ! {
    let said: Vec<_> = said
        .iter()
        .map(|one| one.render(&path.to_string_lossy()))
        .collect();
    panic!("gopt refuses a look-up:\n{}", said.join("\n"));
}

/// One translation unit: the look-up's file, the marked form at every width, and the list of all
/// forms in the order of `ffi::FORMS`.
fn translation_unit(lookup: &str, shape: &str, define: &str) -> String {
    let mut text = format!("/* Made by build.rs. */\n{define}#include \"{lookup}.c\"\n");
    let mut forms = "plain, hand".to_owned();
    for width in WIDTHS {
        let part =
            format!("#define WIDTH {width}\n#include \"{lookup}-{width}.c\"\n#undef WIDTH\n");
        text += &part;
        write!(forms, ", marked_{width}").expect("a string takes all text");
    }
    let name = format!("gopt_{}_{shape}", lookup.replace('-', "_"));
    let count = 2 + WIDTHS.len();
    let list = format!(
        "extern void (*const {name}[{count}])(ARGUMENTS);\n\
         void (*const {name}[{count}])(ARGUMENTS) = {{{forms}}};\n"
    );
    text + &list
}
