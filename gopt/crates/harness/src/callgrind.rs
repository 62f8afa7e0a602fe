//! Counts the instructions of an experiment's child with callgrind. The count is the same in every
//! run, whatever else the machine does.
//!
//! Callgrind counts only inside the functions with one name. It writes a file after each call of
//! such a function, so files and calls have the same order. Called by experiments that count
//! instructions.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// A folder for callgrind's output, which is removed when this is dropped.
#[derive(Debug)]
pub struct Callgrind(PathBuf);

impl Callgrind {
    /// Makes the folder; `None` if there is no valgrind.
    ///
    /// # Errors
    /// There is no place for temporary files.
    pub fn find() -> anyhow::Result<Option<Self>> {
        let has_valgrind = Command::new("valgrind")
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success());
        if !has_valgrind {
            return Ok(None);
        }
        let path = std::env::temp_dir().join(format!("callgrind-{}", std::process::id()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Some(Self(path)))
    }

    /// This program under callgrind, which counts inside the functions called `measured`.
    ///
    /// # Errors
    /// The system does not report the path of this program.
    pub fn command(&self, measured: &str) -> anyhow::Result<Command> {
        let mut command = Command::new("valgrind");
        command.args(["--quiet", "--tool=callgrind", "--collect-atstart=no"]);
        // Depending on the compiler, the types of an instance follow its name or do not.
        for measured in [format!("*::{measured}"), format!("*::{measured}::<*")] {
            command
                .arg(format!("--toggle-collect={measured}"))
                .arg(format!("--dump-after={measured}"));
        }
        command
            .arg(option("--callgrind-out-file=", &self.0.join("out")))
            .arg(std::env::current_exe()?);
        Ok(command)
    }

    /// The instructions of each of `calls` calls, after the program has ended.
    ///
    /// # Errors
    /// Callgrind wrote something unexpected.
    pub fn counts(&self, calls: usize) -> anyhow::Result<Vec<f64>> {
        let paths = (1..).map(|number| self.0.join(format!("out.{number}")));
        let texts = paths.map_while(|path| std::fs::read_to_string(path).ok());
        let called = texts.filter(|text| text.contains("Trigger: --dump-after"));
        let total = |text: String| -> anyhow::Result<f64> {
            let total = text.lines().find_map(|line| line.strip_prefix("totals: "));
            let total = total.context("callgrind wrote no total")?;
            total.trim().parse().context("a total")
        };
        let counts: Vec<f64> = called.map(total).collect::<anyhow::Result<_>>()?;
        ensure!(
            counts.len() == calls,
            "callgrind wrote {} files for {calls} calls",
            counts.len()
        );
        Ok(counts)
    }
}

impl Drop for Callgrind {
    fn drop(&mut self) {
        // A file that is left behind does no harm.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn option(name: &str, path: &Path) -> OsString {
    let mut text = OsStr::new(name).to_owned();
    text.push(path);
    text
}
