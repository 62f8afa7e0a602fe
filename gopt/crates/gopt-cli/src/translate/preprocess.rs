//! `--preprocess`: the input after the C preprocessor, with its line markers, so that messages and
//! debuggers name the lines of the original. Called by `translate.rs`.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// Words of gopt that stay in the text, although the header defines them.
const KEPT: [&str; 3] = ["foreach", "g_expensive", "FPP_EXPENSIVE"];

/// The compiler that preprocesses if `CC` names none.
const COMPILER: &str = "cc";

/// The compiler that preprocesses. `--check` uses the same one for the result, because headers
/// expand differently for each compiler.
pub(super) fn compiler() -> String {
    std::env::var("CC").unwrap_or_else(|_| COMPILER.to_owned())
}

/// The text that the compiler would see, except that loops and marks are not expanded.
///
/// # Errors
/// There is no compiler, or the compiler reports an error, which is passed on.
pub(super) fn preprocess(input: &Path, flags: &[String]) -> anyhow::Result<String> {
    let compiler = compiler();
    let header = super::check::Folder::with_header()?;
    let mut command = Command::new(&compiler);
    command.arg("-E");
    // Each word is defined as itself, and the header skips words that are defined already.
    command.args(KEPT.map(|word| format!("-D{word}={word}")));
    command.args(flags).arg("-idirafter").arg(header.path());
    let output = command.arg(input).stdin(Stdio::null()).output();
    let output = output.with_context(|| {
        format!("cannot start {compiler}, which --preprocess needs; CC names another compiler")
    })?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{compiler} refuses {}:\n{said}",
        input.display()
    );
    let text = String::from_utf8(output.stdout).context("the preprocessed text is not UTF-8")?;
    // The folder has another name in each run, which must not get into the output.
    let path = header.path().join("gopt.h").display().to_string();
    Ok(text.replace(&path, "gopt.h"))
}
