//! `--check`: compiles the original and the result together with the driver, runs both programs,
//! and compares their output and their exit. It does so with every installed compiler. Called by
//! `translate.rs`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use gopt_c::HEADER;

/// A program that runs longer is stopped, and the check fails.
const LIMIT: Duration = Duration::from_secs(120);

/// The compilers that are used if they are installed.
const COMPILERS: [&str; 2] = ["gcc", "clang"];

/// The longest part of a difference to show.
const SHOWN_CHARS: usize = 120;

/// A folder for the programs, removed at the end.
pub(super) struct Folder(PathBuf);

impl Folder {
    fn new() -> anyhow::Result<Self> {
        let nanos = std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |now| now.as_nanos());
        let name = format!("gopt-check-{}-{nanos}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    /// A folder with only `gopt.h` in it.
    pub(super) fn with_header() -> anyhow::Result<Self> {
        let folder = Self::new()?;
        fs::write(folder.0.join("gopt.h"), HEADER)?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(fs::remove_dir_all(&self.0));
    }
}

/// The output of a program, and how it ended.
#[derive(PartialEq, Eq)]
struct Ran {
    stdout: Vec<u8>,
    status: String,
}

/// Compares both programs, compiled with `only` this compiler or with all installed ones. Returns
/// one line that describes the comparison.
pub(super) fn check(
    input: &Path,
    original: &str,
    result: &str,
    driver: &Path,
    flags: &[String],
    only: Option<&str>,
) -> anyhow::Result<String> {
    let driver = fs::canonicalize(driver)
        .with_context(|| format!("cannot read the driver {}", driver.display()))?;
    let compilers: Vec<&str> = match only {
        Some(only) => vec![only],
        None => COMPILERS.into_iter().filter(|it| is_there(it)).collect(),
    };
    ensure!(
        !compilers.is_empty(),
        "--check needs gcc or clang, and neither is installed"
    );
    let folder = Folder::with_header()?;
    let sources = [("original", original), ("result", result)];
    for (name, text) in sources {
        fs::write(folder.0.join(format!("{name}.c")), text)?;
    }
    let beside = input
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    let beside = beside.unwrap_or(Path::new("."));
    let mut bytes = 0;
    for (number, compiler) in compilers.iter().enumerate() {
        let mut ran = Vec::new();
        for (name, _) in sources {
            let program = folder.0.join(format!("{name}-{number}"));
            let mut command = Command::new(compiler);
            command.args(["-O2", "-w", "-o"]).arg(&program);
            // A file that defines `foreach` and the marks itself keeps its definitions.
            if !original.contains("define foreach") {
                command.arg("-include").arg(folder.0.join("gopt.h"));
            }
            command
                .arg("-I")
                .arg(beside)
                .arg("-I")
                .arg(&folder.0)
                .args(flags);
            command.arg(folder.0.join(format!("{name}.c"))).arg(&driver);
            compile(command.arg("-lm"), compiler, name)?;
            ran.push(run(&program, &folder.0).with_context(|| format!("the {name} ({compiler})"))?);
        }
        compare(&ran[0], &ran[1], compiler)?;
        bytes += ran[0].stdout.len();
    }
    let with = compilers.join(" and ");
    Ok(format!(
        "original and result did the same with {with} ({bytes} bytes compared)"
    ))
}

fn is_there(compiler: &str) -> bool {
    let version = Command::new(compiler)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    version.is_ok_and(|status| status.success())
}

fn compile(command: &mut Command, compiler: &str, name: &str) -> anyhow::Result<()> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot start {compiler}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{compiler} refuses the {name}:\n{said}"
    );
    Ok(())
}

fn run(program: &Path, folder: &Path) -> anyhow::Result<Ran> {
    let path = folder.join("stdout");
    let mut child = Command::new(program)
        .stdin(Stdio::null())
        .stdout(fs::File::create(&path)?)
        .spawn()
        .context("cannot be started")?;
    let begin = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if begin.elapsed() > LIMIT {
            child.kill()?;
            child.wait()?;
            bail!("did not end within {} s", LIMIT.as_secs());
        }
        std::thread::sleep(Duration::from_millis(2));
    };
    let mut stdout = Vec::new();
    fs::File::open(&path)?.read_to_end(&mut stdout)?;
    let status = status.to_string();
    Ok(Ran { stdout, status })
}

fn compare(original: &Ran, result: &Ran, compiler: &str) -> anyhow::Result<()> {
    if original == result {
        return Ok(());
    }
    if original.status != result.status {
        let (one, other) = (&original.status, &result.status);
        bail!("the original ends with {one}, the result with {other} ({compiler})");
    }
    let lines = |ran: &Ran| -> Vec<String> {
        let text = String::from_utf8_lossy(&ran.stdout).into_owned();
        text.lines().map(str::to_owned).collect()
    };
    let (one, other) = (lines(original), lines(result));
    let pairs = one.iter().zip(&other);
    let line = pairs.take_while(|(one, other)| one == other).count();
    let show = |lines: &[String]| -> String {
        let line = lines.get(line).map_or("(nothing)", String::as_str);
        line.chars().take(SHOWN_CHARS).collect()
    };
    bail!(
        "the output differs in line {} ({compiler})\n  original: {}\n  result:   {}",
        line + 1,
        show(&one),
        show(&other)
    );
}
