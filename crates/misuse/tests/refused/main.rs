//! Programs that must not compile (design §11): the types carry the rules of ownership, so the
//! compiler refuses a program that breaks one, before it can corrupt a message.
//!
//! A file next to each program in `tests/compile_fail` holds the expected message of the compiler.
//! After a change of the toolchain, `OVERWRITE=1 cargo test -p dunlin-misuse` rewrites these files;
//! read the difference.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod compiler;
mod message;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use compiler::Compiler;
use message::{clean, compared};

/// Compilers that run at a time.
const AT_A_TIME: usize = 2;

#[test]
fn programs_that_break_the_rules_of_ownership_do_not_compile() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compile_fail");
    let files = fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let mut programs: Vec<PathBuf> = files
        .filter(|file| file.extension().is_some_and(|it| it == "rs"))
        .collect();
    programs.sort();
    assert!(!programs.is_empty());
    let compiler = Compiler::with_libraries_of_this_test();
    let (next, faults) = (AtomicUsize::new(0), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Err(fault) = check(&compiler, program) {
                        eprintln!("{}: {fault}", program.display());
                        faults.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(faults.into_inner(), 0);
}

/// Compares the compiler's message about a program with the expected one.
fn check(compiler: &Compiler, program: &Path) -> Result<(), String> {
    let message = compiler.compile(program).err().ok_or("compiles")?;
    let (found, file) = (clean(&message), program.with_extension("stderr"));
    if std::env::var_os("OVERWRITE").is_some() {
        fs::write(&file, found).unwrap();
        return Ok(());
    }
    let wanted = fs::read_to_string(&file).map_err(|error| error.to_string())?;
    match compared(&found) == compared(&wanted) {
        true => Ok(()),
        false => Err(format!("expected:\n{wanted}\nfound:\n{found}")),
    }
}
