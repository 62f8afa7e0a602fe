//! DPDK's environment (EAL), which a process can start once, and never again after a failure.
//!
//! It starts on a thread of its own, so affinity and signals of the program's threads stay as they
//! are. That thread blocks all signals, and after the start runs the function that the caller gives
//! (`keeper`). Everything that can be checked without DPDK is checked before the start, because a
//! process can try again after such an error. Called by `open`.

use std::ffi::CString;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::ffi::{self, Functions};
use crate::library;
use crate::words;

/// The outcome of the only attempt.
#[derive(Debug)]
enum Outcome {
    Running(&'static Functions),
    Failed(String),
}

/// The arguments of the only attempt, and its outcome. `None` before the attempt.
static STARTED: Mutex<Option<(Vec<String>, Outcome)>> = Mutex::new(None);

/// Options that would end the process, or make it depend on another process. Each has the forbidden
/// value; `None`: every value is forbidden.
const REFUSED: [(&str, Option<&str>); 4] = [
    ("--help", None),
    ("--log-level", Some("help")),
    ("--proc-type", Some("secondary")),
    ("--proc-type", Some("auto")),
];

/// Where the kernel lists its pools of huge pages.
const HUGEPAGES: &str = "/sys/kernel/mm/hugepages";

/// Starts DPDK with these arguments in addition to our own, or finds that it runs with them. Its
/// thread runs `then`, which does not return.
///
/// # Errors
/// `InvalidInput` if DPDK runs with other arguments, or if these cannot be used; `NotFound` without
/// the library; `OutOfMemory` without huge pages; otherwise the last lines of DPDK's log. After an
/// error of the last kind, no attempt in this process can succeed.
pub(crate) fn start(given: &[String], then: fn()) -> io::Result<&'static Functions> {
    let mut started = STARTED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((earlier, outcome)) = &*started {
        return again(earlier, outcome, given);
    }
    check(given, Path::new(HUGEPAGES))?;
    let functions: &'static Functions = Box::leak(Box::new(library::load()?));
    let arguments = arguments(given, &ffi::processors());
    let (outcome, result) = match start_on_own_thread(functions, &arguments, then) {
        Ok(()) => (Outcome::Running(functions), Ok(functions)),
        Err(why) => {
            let what = format!(
                "DPDK does not start with {}, and a process can start it only once: {why}",
                arguments.join(" ")
            );
            (Outcome::Failed(what.clone()), Err(io::Error::other(what)))
        }
    };
    *started = Some((given.to_vec(), outcome));
    result
}

/// The answer to a later attempt.
fn again(
    earlier: &[String],
    outcome: &Outcome,
    given: &[String],
) -> io::Result<&'static Functions> {
    match outcome {
        Outcome::Failed(what) => Err(io::Error::other(what.clone())),
        Outcome::Running(functions) if earlier == given => Ok(functions),
        Outcome::Running(_) => Err(invalid(format!(
            "DPDK runs with the arguments {earlier:?} already, so it cannot get {given:?}"
        ))),
    }
}

/// Makes the checks that are possible before the attempt.
fn check(given: &[String], hugepages: &Path) -> io::Result<()> {
    if let Some(refused) = refused(given) {
        return Err(invalid(format!(
            "the argument {refused} of DPDK cannot be used here"
        )));
    }
    if let Some(zero) = given.iter().find(|it| it.contains('\0')) {
        return Err(invalid(format!("an argument has a zero byte: {zero:?}")));
    }
    if has(given, &["--no-huge"]) {
        return Ok(());
    }
    let (free, asked) = (free_hugepages(hugepages), asked_memory(given));
    let what = match free {
        0 => "no huge page is free: reserve some (`sysctl vm.nr_hugepages=64`), or give the \
              argument --no-huge after a second `;`, as in \
              dpdk:net_memif0;ip=10.0.0.2/24;--no-huge"
            .to_owned(),
        _ if free >= asked => return Ok(()),
        _ => format!(
            "DPDK is asked for {} MiB of huge pages (-m, --socket-mem), and {} MiB are free: ask \
             for less, or reserve more (`sysctl vm.nr_hugepages=N`)",
            asked >> 20,
            free >> 20
        ),
    };
    Err(io::Error::new(io::ErrorKind::OutOfMemory, what))
}

/// All arguments, with ours first, so that the given ones override them.
fn arguments(given: &[String], processors: &[usize]) -> Vec<String> {
    let mut all = vec!["dunlin".to_owned(), "--no-telemetry".to_owned()];
    // DPDK refuses `--in-memory` together with `--no-huge`. But without huge pages, it makes no
    // files except those that `--no-shconf` prevents.
    let without_files = match has(given, &["--no-huge"]) {
        true => "--no-shconf",
        false => "--in-memory",
    };
    all.push(without_files.to_owned());
    if !has(given, &["--file-prefix"]) {
        all.push(format!("--file-prefix=dunlin-{}", std::process::id()));
    }
    if !has(given, &["-c", "-l", "--lcores"]) && !processors.is_empty() {
        // DPDK gets one thread, which may run on every processor that a thread of the program may
        // use. The calling thread's own processors would be too few: it may be bound to the one on
        // which it polls.
        let list: Vec<_> = processors.iter().map(usize::to_string).collect();
        all.push(format!("--lcores=0@({})", list.join(",")));
    }
    if !has(given, &["-a", "--allow", "-b", "--block", "--no-pci"]) {
        // DPDK would otherwise take all PCI devices at its start. No network device has this
        // address; devices are opened later, by name.
        all.push("--allow=0000:00:00.0".to_owned());
    }
    all.extend_from_slice(given);
    all
}

/// The first argument that cannot be used, if there is one.
fn refused(given: &[String]) -> Option<&String> {
    let is_refused = |at: usize| {
        let it = given[at].as_str();
        let value = match it.split_once('=') {
            Some((_, value)) => Some(value),
            None => given.get(at + 1).map(String::as_str),
        };
        let is_one = |&(option, only): &(&str, Option<&str>)| {
            is_option(it, option) && (only.is_none() || only == value)
        };
        // `-v` has no value, so another short option may follow it.
        let short = it.strip_prefix('-').map(|it| it.trim_start_matches('v'));
        short.is_some_and(|it| it.starts_with('h')) || REFUSED.iter().any(is_one)
    };
    let first = (0..given.len()).find(|&at| is_refused(at));
    first.map(|at| &given[at])
}

/// Whether one of these options is given, with its value in the same argument or in the next.
fn has(given: &[String], options: &[&str]) -> bool {
    given
        .iter()
        .any(|it| options.iter().any(|option| is_option(it, option)))
}

/// Whether an argument is this option, perhaps with its value, as `getopt_long(3)` reads it: the
/// name of a long option may be shortened.
fn is_option(argument: &str, option: &str) -> bool {
    match (argument.strip_prefix("--"), option.strip_prefix("--")) {
        (Some(given), Some(long)) => {
            let name = given.split_once('=').map_or(given, |(name, _)| name);
            !name.is_empty() && long.starts_with(name)
        }
        (None, None) => argument.starts_with(option),
        _ => false,
    }
}

/// Bytes of all free huge pages. A pool's folder has the size of its pages in its name, as in
/// `hugepages-2048kB`.
fn free_hugepages(folder: &Path) -> u64 {
    let pools = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let free = pools.filter_map(|pool| {
        let name = pool.file_name();
        let size = name.to_str()?.strip_prefix("hugepages-")?;
        let kilobytes: u64 = size.strip_suffix("kB")?.parse().ok()?;
        let text = std::fs::read_to_string(pool.path().join("free_hugepages")).ok()?;
        Some(text.trim().parse::<u64>().ok()? * (kilobytes << 10))
    });
    free.sum()
}

/// Bytes of huge pages that DPDK must get at its start: megabytes in all, or of each processor
/// socket.
fn asked_memory(given: &[String]) -> u64 {
    let value_of = |option: &str| {
        let at = given.iter().position(|it| is_option(it, option))?;
        let own = match given[at].split_once('=') {
            Some((_, value)) => value,
            None => given[at].strip_prefix("-m").unwrap_or_default(),
        };
        let next = given.get(at + 1).map(String::as_str);
        Some(if own.is_empty() { next? } else { own })
    };
    let sum = |value: &str| -> u64 {
        let sockets = value.split(',');
        let megabytes = sockets.filter_map(|it| it.trim().parse::<u64>().ok());
        megabytes.fold(0, u64::saturating_add)
    };
    let asked = ["-m", "--socket-mem"].map(|it| value_of(it).map_or(0, sum));
    asked[0].max(asked[1]).saturating_mul(1 << 20)
}

/// Starts DPDK on a new thread, which does not end.
fn start_on_own_thread(
    functions: &'static Functions,
    arguments: &[String],
    then: fn(),
) -> Result<(), String> {
    let arguments = arguments.iter().map(|it| CString::new(it.as_str()));
    let arguments: Vec<CString> = arguments
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let (report, outcome) = channel();
    std::thread::Builder::new()
        .name("dunlin-dpdk".to_owned())
        .spawn(move || {
            if run(functions, arguments, &report) {
                then();
            }
        })
        .map_err(|error| error.to_string())?;
    outcome
        .recv()
        .map_err(|_| "its thread ended".to_owned())
        .and_then(|outcome| outcome)
}

/// Starts DPDK on this thread, and reports the outcome. True if it runs.
fn run(
    functions: &'static Functions,
    arguments: Vec<CString>,
    report: &Sender<Result<(), String>>,
) -> bool {
    ffi::block_signals();
    // DPDK keeps pointers into its arguments.
    let mut pointers: Vec<_> = arguments.into_iter().map(CString::into_raw).collect();
    let count = i32::try_from(pointers.len()).expect("a few arguments");
    pointers.push(std::ptr::null_mut());
    let words = match words::listen() {
        Ok(words) => words,
        Err(error) => {
            // If the caller is gone, nothing needs the answer.
            let _ = report.send(Err(error.to_string()));
            return false;
        }
    };
    // SAFETY: the strings are live and end with a null pointer, as those of `main` do; DPDK gets
    // the descriptor for itself.
    let code = unsafe { (functions.start)(count, pointers.leak().as_mut_ptr(), words) };
    let outcome = match code {
        0 => Ok(()),
        code => Err(words::error_of(code)),
    };
    report.send(outcome).is_ok() && code == 0
}

fn invalid(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

#[cfg(test)]
mod tests;
