//! The compiler's messages in a form that does not depend on the machine, nor on lines of other
//! files than the program. Called by the test.

/// Parts of lines that only say where more can be read.
const HINTS: [&str; 5] = [
    "error: aborting due to",
    "For more information about",
    "Some errors have detailed explanations",
    "the full name for the type has been written to",
    "consider using `--verbose`",
];

/// The message with short paths, and without the numbers of lines in other files.
pub(super) fn clean(message: &str) -> String {
    let mut clean = String::new();
    let mut is_elsewhere = false;
    let lines = message
        .lines()
        .filter(|line| !HINTS.iter().any(|it| line.contains(it)));
    for line in lines {
        let mut line = with_short_paths(line);
        let start = line.trim_start();
        if start.starts_with("--> ") || start.starts_with("::: ") {
            is_elsewhere = start[4..].starts_with('$');
            if is_elsewhere {
                line = without_position(&line).to_owned();
            }
        } else if is_elsewhere {
            line = without_number(&line);
        }
        clean.push_str(line.trim_end());
        clean.push('\n');
    }
    format!("{}\n", clean.trim_end())
}

/// A message without the indentation of its lines, which depends on the numbers in other lines.
pub(super) fn compared(message: &str) -> String {
    let lines = message.lines().map(str::trim_start);
    lines.collect::<Vec<_>>().join("\n")
}

/// The compiler runs in the folder of the workspace.
fn with_short_paths(line: &str) -> String {
    let line = line
        .replace("{closure@crates/misuse/", "{closure@$DIR/")
        .replace("--> crates/misuse/", "--> ")
        .replace("--> crates/", "--> $WORKSPACE/crates/")
        .replace("::: crates/", "::: $WORKSPACE/crates/");
    // The files of the standard library are installed, or only named by its commit.
    let line = cut(&line, "/lib/rustlib/src/rust/library/", "$RUST/");
    let line = match line.contains("--> /rustc/") {
        true => cut(&line, "/library/", "$RUST/"),
        false => line,
    };
    let line = cut_registry(&line);
    match line
        .trim_start()
        .strip_prefix("and ")
        .and_then(|it| it.strip_suffix(" others"))
    {
        Some(_) => "           and $N others".to_owned(),
        None => line,
    }
}

/// Replaces a path from its first `/` to the end of `known` with `short`.
fn cut(line: &str, known: &str, short: &str) -> String {
    match line.find(known) {
        Some(at) => {
            let start = line[..at].find('/').unwrap_or(at);
            format!("{}{short}{}", &line[..start], &line[at + known.len()..])
        }
        None => line.to_owned(),
    }
}

/// Replaces the folder of a package in cargo's registry, whose name ends with a version.
fn cut_registry(line: &str) -> String {
    let line = cut(line, "/registry/src/", "$CARGO/");
    let Some((before, path)) = line.split_once("$CARGO/") else {
        return line;
    };
    // The first folder is that of the registry.
    let mut parts = path.splitn(3, '/').skip(1);
    let (package, rest) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    match package.rsplit_once('-') {
        Some((name, _)) => format!("{before}$CARGO/{name}-$VERSION/{rest}"),
        None => line,
    }
}

/// The line without `:12:34` at its end.
fn without_position(line: &str) -> &str {
    line.trim_end_matches(|it: char| it == ':' || it.is_ascii_digit())
}

/// The line with spaces for the number before its `|`.
fn without_number(line: &str) -> String {
    let rest = line.trim_start_matches(|it: char| it == ' ' || it.is_ascii_digit());
    let digits = line.len() - rest.len();
    format!("{}{}", " ".repeat(digits), &line[digits..])
}
