//! Programs that take part in a comparison: this build, another one, or any program that keeps the
//! [`contract`](super::contract). Each measurement is a process of its own. It ends by itself, or
//! is killed with all processes that it started: when it takes too long, on Ctrl-C, and when the
//! comparison ends.

use std::fmt;
use std::io::{ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail, ensure};

use super::contract::{Answer, Request, SUBCOMMAND, beginning};
use harness::{signal, sys};

/// Time between two checks for Ctrl-C during a wait.
const GLANCE: Duration = Duration::from_millis(20);

/// Longest time from the end of a program's output to its own end.
const ENDING: Duration = Duration::from_secs(5);

/// The most bytes of output that are read; an answer has a few hundred.
const MOST: u64 = 1 << 20;

/// A measurement that failed, and the reason: the program ended with an error or took too long. The
/// machine may be busy, so a later measurement may succeed.
#[derive(Debug)]
pub(super) struct Lost(pub(super) String);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lost {}

/// One program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Program {
    /// The program's name on the command line.
    name: String,
    path: PathBuf,
    is_dunlin: bool,
}

impl FromStr for Program {
    type Err = String;

    /// A dunlin, or `peer:` and any program.
    fn from_str(text: &str) -> Result<Self, String> {
        let peer = text.strip_prefix("peer:");
        let path = peer.unwrap_or(text);
        if path.is_empty() {
            return Err("name a program, or `peer:` and a program".to_owned());
        }
        Ok(Self {
            name: text.to_owned(),
            path: path.into(),
            is_dunlin: peer.is_none(),
        })
    }
}

impl Program {
    /// This build, as a program.
    ///
    /// # Errors
    /// If the system does not report its path.
    pub(super) fn this() -> anyhow::Result<Self> {
        Ok(Self {
            name: "this build".to_owned(),
            path: std::env::current_exe()?,
            is_dunlin: true,
        })
    }

    /// The program's name, as the user wrote it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Makes the program measure a case within `limit`.
    ///
    /// # Errors
    /// [`signal::Interrupted`]; [`Lost`]; or the program cannot be started, or does not keep the
    /// contract.
    pub(super) fn measure(&self, request: &Request, limit: Duration) -> anyhow::Result<Answer> {
        let mut command = Command::new(&self.path);
        if self.is_dunlin {
            command.arg(SUBCOMMAND);
        }
        command.args(request.words());
        let mut running = Running::start(command).map_err(|error| self.cannot_start(error))?;
        let ended = running.wait(limit);
        let (status, said) = running.end()?;
        let asked = || format!("{}, asked for `{}`", self.name, request.words().join(" "));
        match ended {
            Err(error) if error.is::<signal::Interrupted>() => Err(error),
            Err(error) => Err(error.context(Lost(quoted(&said)))).with_context(asked),
            Ok(text) => self.judge(&text, status, &said).with_context(asked),
        }
    }

    /// The answer of a program that has ended.
    fn judge(&self, text: &str, status: ExitStatus, said: &str) -> anyhow::Result<Answer> {
        if self.is_dunlin && said.contains(SUBCOMMAND) {
            bail!("it is a dunlin from before `bench compare`; build it from a later commit");
        }
        if !status.success() {
            return Err(Lost(format!("it ended with {status}, {}", quoted(said))).into());
        }
        Answer::parse(text)
    }

    fn cannot_start(&self, error: std::io::Error) -> anyhow::Error {
        let path = self.path.display();
        let why = match error.kind() {
            ErrorKind::NotFound => {
                anyhow!("there is no program {path}; a path with a slash is taken as it is")
            }
            ErrorKind::PermissionDenied => anyhow!("{path} is not a program that may be run"),
            _ => anyhow!(error).context(format!("{path} cannot be started")),
        };
        why.context(format!("--with {}", self.name))
    }
}

/// The program's standard error, for a message.
fn quoted(said: &str) -> String {
    match said.trim() {
        "" => "it said nothing".to_owned(),
        said => format!("it said {:?}", beginning(said)),
    }
}

/// A running program, with all processes that it started.
struct Running {
    child: Child,
    stdout: Receiver<String>,
    stderr: Receiver<String>,
    /// The first process has been waited for, so its number may now belong to another process.
    is_buried: bool,
}

impl Running {
    fn start(mut command: Command) -> std::io::Result<Self> {
        // A process group of its own keeps the terminal's Ctrl-C away, and can be ended as a whole.
        sys::end_with_this(&mut command);
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()?;
        Ok(Self {
            stdout: read(child.stdout.take()),
            stderr: read(child.stderr.take()),
            child,
            is_buried: false,
        })
    }

    /// Waits until the program ends; returns its output.
    fn wait(&mut self, limit: Duration) -> anyhow::Result<String> {
        let deadline = Instant::now() + limit;
        let text = loop {
            signal::check()?;
            match self.stdout.recv_timeout(GLANCE) {
                Ok(text) => break text,
                Err(RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(_) => bail!(
                    "it has not answered for {} s, the time of --limit",
                    limit.as_secs_f64()
                ),
            }
        };
        let deadline = Instant::now() + ENDING;
        loop {
            signal::check()?;
            if sys::has_ended(&self.child)? {
                return Ok(text);
            }
            ensure!(
                Instant::now() < deadline,
                "it closed its output, but still runs"
            );
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Ends the program with all processes that it started. Returns its exit status and its
    /// standard error.
    fn end(mut self) -> std::io::Result<(ExitStatus, String)> {
        let status = self.bury()?;
        Ok((status, self.stderr.recv_timeout(ENDING).unwrap_or_default()))
    }

    /// Kills the group, and then waits for its first process. Until that wait, no other group can
    /// have the number.
    fn bury(&mut self) -> std::io::Result<ExitStatus> {
        sys::kill_group(&self.child);
        self.is_buried = true;
        self.child.wait()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_buried {
            // An error means that the program has ended already.
            let _ = self.bury();
        }
    }
}

/// Reads a pipe as text until it is closed.
fn read(pipe: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (tx, rx) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // After an error, only the bytes before it count.
            let _ = pipe.by_ref().take(MOST).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        // The receiver is gone if the comparison no longer waits.
        let _ = tx.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    rx
}
