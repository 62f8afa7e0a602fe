//! The machine and the program from which figures come.

use std::process::Command;
use std::sync::OnceLock;
use std::thread;

use serde::{Deserialize, Serialize};

/// The form of rows. Rows of another form have other fields, or other meanings of fields.
pub const FORMAT: u32 = 1;

/// The folders of a repository that contain the sources of programs.
const SOURCES: [&str; 2] = [":/crates", ":/gopt"];

/// The profile of cargo that this program is built with.
pub const PROFILE: &str = env!("HARNESS_PROFILE");

/// The program and the machine of a measurement.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the program. The field is named after the first program that wrote rows of
    /// this form.
    pub dunlin: String,
    /// The commit from which the program was built, if that is certain.
    pub commit: Option<String>,
    /// The profile of cargo: `release`, `lto` (in one unit), or `debug`.
    pub build: String,
    /// The processor, the number of processors, and the kernel.
    pub machine: String,
}

/// Name and version of this program.
static PROGRAM: OnceLock<[&str; 2]> = OnceLock::new();

/// Sets the name of this program, before its first row. A second call changes nothing.
pub fn introduce(name: &'static str, version: &'static str) {
    PROGRAM.get_or_init(|| [name, version]);
}

impl Origin {
    /// This program on this machine.
    pub fn here() -> &'static Self {
        static HERE: OnceLock<Origin> = OnceLock::new();
        HERE.get_or_init(|| Self {
            format: FORMAT,
            dunlin: program()[1].to_owned(),
            commit: commit(),
            build: PROFILE.to_owned(),
            machine: machine(),
        })
    }
}

/// Name and version of the program. Tests set none, so there is a default.
fn program() -> [&'static str; 2] {
    *PROGRAM.get_or_init(|| [env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")])
}

/// The machine and the program, in a line for people.
pub fn describe() -> String {
    let Origin {
        machine,
        dunlin,
        build,
        ..
    } = Origin::here();
    format!("{machine}; {} {dunlin}, {build} build", program()[0])
}

/// The average number of threads that wanted to run during the last minute.
pub fn load() -> String {
    let loads = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loads.split(' ').next().unwrap_or("unknown").to_owned()
}

/// Describes the machine. Leaves out parts that the system does not report.
fn machine() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let processor = field(&cpuinfo, "model name").unwrap_or(std::env::consts::ARCH);
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{processor}, {cores} cores, Linux {}", release.trim())
}

/// The commit of the tree from which this program was built, with `+` if sources differ from it.
/// The program looks at the tree when it runs: if the build looked, every commit would cause a new
/// build. So the commit counts only if the program is newer than the last change of the checkout.
fn commit() -> Option<String> {
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        let out = git
            .args(["-C", env!("CARGO_MANIFEST_DIR")])
            .args(args)
            .output()
            .ok()?;
        let text = String::from_utf8(out.stdout).ok()?;
        out.status.success().then(|| text.trim().to_owned())
    };
    let log = git(&[
        "rev-parse",
        "--path-format=absolute",
        "--git-path",
        "logs/HEAD",
    ])?;
    let checked_out = std::fs::metadata(log).ok()?.modified().ok()?;
    let program = std::env::current_exe().ok()?;
    let built = std::fs::metadata(program).ok()?.modified().ok()?;
    if built < checked_out {
        return None;
    }
    let mut status = vec!["status", "--porcelain", "--untracked-files=no", "--"];
    status.extend(SOURCES);
    let changed = git(&status)?;
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    Some(commit + if changed.is_empty() { "" } else { "+" })
}

/// The value after the first `name :` of a file like `/proc/cpuinfo`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}
