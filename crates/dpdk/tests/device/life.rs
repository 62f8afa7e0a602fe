//! The start of DPDK: it leaves affinity and signals alone, refuses other arguments, and a process
//! that is killed leaves nothing. Each test runs in a process of its own, because DPDK starts once.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use dunlin_core::transport::Tx;
use dunlin_dpdk::{Bare, Dpdk, DpdkRx, library};
use dunlin_testkit::child::Child;
use dunlin_testkit::user::STRANGER;
use dunlin_testkit::wait::until;
use dunlin_transport::connect::{Arm, Connect};

use crate::memif::{packet_to, silent_peer};
use crate::{open, options, pair, relay};

/// The role that reports frames at a socket, whose name follows.
const REPORTS: &str = "reports at ";

/// Plays the role of a child.
pub(crate) fn play(role: &str) {
    match role {
        "leaves alone" => start_and_compare(),
        "refuses" => start_twice(),
        "fails" => fail_twice(),
        "is killed" => {
            let id = std::process::id();
            let device = format!(
                "net_memif1,role=server,socket={};ip=10.84.0.1/24;{}",
                socket_of(id),
                pair::ARGUMENTS
            );
            let _halves = open(&device);
            println!("#{id}");
            std::thread::sleep(Duration::from_secs(60));
        }
        role if role.starts_with(REPORTS) => report_frames(&role[REPORTS.len()..]),
        "sleeps" => sleep(),
        "fails in a hole" => relay::fail_in_a_hole(),
        "has rights of its file" => refuse_libraries(),
        _ => panic!("no such role"),
    }
    println!("#done");
}

/// The affinity and the blocked signals of this thread, and the handlers of the process.
fn state() -> (Vec<usize>, String, Vec<(usize, i32)>) {
    // SAFETY: the kernel writes a set into a live one, and zeros are a set.
    let cpus = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &raw mut set);
        (0..1024)
            .filter(|cpu| libc::CPU_ISSET(*cpu, &set))
            .collect()
    };
    let handlers = (1..=64).map(|signal| {
        // SAFETY: the call only reads the handler; libc refuses the numbers that are its own.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            libc::sigaction(signal, std::ptr::null(), &raw mut action);
            (action.sa_sigaction, action.sa_flags)
        }
    });
    (cpus, blocked("thread-self"), handlers.collect())
}

/// The signals that a thread blocks, as the kernel shows them.
fn blocked(thread: &str) -> String {
    status(thread, "SigBlk:")
}

fn threads() -> BTreeSet<String> {
    let folder = std::fs::read_dir("/proc/self/task").unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Binds the calling thread to the first of its processors.
fn bind() {
    let (cpus, _, _) = state();
    // SAFETY: the set is initialised, the processor is below its size, and the kernel only reads.
    let outcome = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpus[0], &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &raw const set)
    };
    assert_eq!(outcome, 0);
}

/// The line of a thread's status that begins with this.
fn status(thread: &str, begin: &str) -> String {
    let status = std::fs::read_to_string(format!("/proc/{thread}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(begin));
    line.unwrap().to_owned()
}

fn start_and_compare() {
    let processors = status("self", "Cpus_allowed:");
    bind();
    let (before, threads_before) = (state(), threads());
    let device = format!("net_null0;ip=10.84.0.1/24;{}", pair::ARGUMENTS);
    let _halves = open(&device);
    assert_eq!(state(), before);
    let new: Vec<String> = threads().difference(&threads_before).cloned().collect();
    assert!(!new.is_empty(), "DPDK has a thread of its own");
    let keeper = new.iter().map(|thread| format!("self/task/{thread}"));
    let may_run = keeper.map(|thread| status(&thread, "Cpus_allowed:"));
    let all = may_run.filter(|its| *its == processors).count();
    assert!(all > 0, "the keeper may run where the program may");
    for thread in new {
        let blocked = blocked(&format!("self/task/{thread}"));
        let mask = u64::from_str_radix(blocked.trim_start_matches("SigBlk:").trim(), 16).unwrap();
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGUSR1, libc::SIGCHLD] {
            assert!(mask >> (signal - 1) & 1 == 1, "signal {signal}: {blocked}");
        }
    }
}

fn start_twice() {
    let device = format!("net_null0;ip=10.84.0.1/24;{}", pair::ARGUMENTS);
    let _halves = open(&device);
    for (other, parts) in [
        ("net_null1;ip=10.84.0.1/24;--no-huge -m 64", ["1600", "64"]),
        (
            &device.replace("0.1/24", "0.2/24"),
            ["10.84.0.1", "10.84.0.2"],
        ),
        (
            &device.replace("null0", "null0,copy=1"),
            ["\"net_null0\"", "net_null0,copy=1"],
        ),
    ] {
        let error = Dpdk::open(&options(other)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let text = error.to_string();
        assert!(parts.iter().all(|part| text.contains(part)), "{text}");
    }
    let error = Dpdk::open(&options(&device.replace("net_null0", "net_nothing0"))).unwrap_err();
    assert!(error.to_string().contains("net_nothing0"), "{error}");
    let respelled = device.replace("net_null0", "vdev:net_null0");
    let error = Dpdk::open(&options(&respelled)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ResourceBusy, "{error}");
    let _with_a_bus = open(&device.replace("net_null0", "vdev:net_null2"));
    let mut taken = options(&device);
    taken.udp.port = 7;
    let _first = Dpdk::open(&taken).unwrap();
    let error = Dpdk::open(&taken).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
}

fn fail_twice() {
    let wrong = "net_null0;ip=10.84.0.1/24;--no-huge --main-lcore=7";
    let right = format!("net_null0;ip=10.84.0.1/24;{}", pair::ARGUMENTS);
    for device in [wrong, &right] {
        let error = Dpdk::open(&options(device)).unwrap_err().to_string();
        assert!(error.contains("--main-lcore=7"), "{error}");
        assert!(error.contains("only once"), "{error}");
    }
}

/// Sleeps as an endpoint without work does, and measures its processor time of a second.
fn sleep() {
    let device = format!("net_ring0;ip=10.84.0.1/24;{}", pair::ARGUMENTS);
    let mut halves = open(&device);
    until(|| Dpdk::arm(&mut halves.rx, &mut halves.tx) == Arm::Wait);
    // The longer the device is not used, the less often the keeper looks.
    let mut used = Duration::MAX;
    until(|| {
        let before = processor_time();
        std::thread::sleep(Duration::from_secs(1));
        used = processor_time() - before;
        used < Duration::from_millis(10)
    });
    println!("#{}", used.as_micros());
}

/// Reports the first frame that comes, and waits to be killed.
fn report_frames(socket: &str) {
    let device = format!("net_memif1,role=server,socket={socket};ip=10.84.0.1/24");
    let mut device = Bare::open(&format!("{device};{}", pair::ARGUMENTS)).unwrap();
    println!("#ready");
    until(|| device.receive(32, |_| {}) > 0);
    println!("#came");
    std::thread::sleep(Duration::from_secs(60));
}

#[test]
#[ignore = "needs DPDK"]
fn a_peer_that_is_killed_takes_the_link_down() {
    let socket = socket_of(format!("{}-killed", std::process::id()));
    let child = Child::start(&format!("{REPORTS}{socket}"));
    assert_eq!(child.line(), "ready");
    let device = format!("net_memif90,role=client,socket={socket};ip=10.82.5.2/24");
    let mut near = open(&format!("{device};{}", pair::ARGUMENTS));
    let downs = |rx: &DpdkRx| {
        let details = rx.details();
        details.iter().find(|it| it.0 == "link_downs").unwrap().1
    };
    // The packet waits for its neighbour, for which the device asks.
    let peer = silent_peer(&mut near);
    near.tx.burst(&[packet_to(peer)]);
    assert_eq!(child.line(), "came");
    // The keeper looks four times in a second.
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!(downs(&near.rx), 0);
    child.kill();
    until(|| downs(&near.rx) == 1);
    // The endpoint lives: its packets are dropped, or wait for the neighbour.
    near.tx.burst(&[packet_to(peer)]);
}

fn refuse_libraries() {
    let device = format!("net_null0;ip=10.84.0.1/24;{}", pair::ARGUMENTS);
    let opened = Dpdk::open(&options(&device)).map(|_| ());
    let found = library::find().map(|_| ());
    for outcome in [opened, found] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
    }
}

fn processor_time() -> Duration {
    // SAFETY: the kernel writes the time into a live one.
    let time = unsafe {
        let mut time: libc::timespec = std::mem::zeroed();
        libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut time);
        time
    };
    let seconds = u64::try_from(time.tv_sec).unwrap();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap())
}

#[test]
#[ignore = "needs DPDK"]
fn affinity_signals_and_handlers_stay_as_they_are() {
    assert_eq!(Child::start("leaves alone").line(), "done");
}

#[test]
#[ignore = "needs DPDK"]
fn other_arguments_and_settings_are_refused_with_both() {
    assert_eq!(Child::start("refuses").line(), "done");
}

#[test]
#[ignore = "needs DPDK"]
fn a_failed_start_is_final_and_says_so() {
    assert_eq!(Child::start("fails").line(), "done");
}

/// A copy of this program that its user may start with the rights of another one.
struct Copy(PathBuf);

impl Copy {
    fn new() -> Self {
        let name = format!("dunlin-dpdk-copy-{}", std::process::id());
        let copy = Self(std::env::temp_dir().join(name));
        std::fs::copy(std::env::current_exe().unwrap(), &copy.0).unwrap();
        chown(&copy.0, Some(STRANGER), None).unwrap();
        std::fs::set_permissions(&copy.0, PermissionsExt::from_mode(0o4755)).unwrap();
        copy
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

#[test]
#[ignore = "needs root"]
fn a_program_with_rights_of_its_file_loads_no_library() {
    let copy = Copy::new();
    assert_eq!(
        Child::start_as(&copy.0, "has rights of its file").line(),
        "done"
    );
}

#[test]
#[ignore = "needs DPDK"]
fn a_sleeping_endpoint_costs_little() {
    let child = Child::start("sleeps");
    println!("{} us of processor time a second", child.line());
    assert_eq!(child.line(), "done");
}

/// The files in the folders in which DPDK, or a device, could leave some.
fn traces() -> BTreeSet<String> {
    let folders = ["/dev/hugepages", "/dev/shm", "/run", "/var/run/dpdk"].map(PathBuf::from);
    let mut traces = BTreeSet::new();
    for folder in folders.into_iter().chain([std::env::temp_dir()]) {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let paths = entries.map(|entry| entry.path().display().to_string());
        traces.extend(paths);
    }
    traces
}

/// The socket of the child that is killed: a name of the kernel, without a file.
fn socket_of(process: impl std::fmt::Display) -> String {
    format!("/dunlin-memif-{process}")
}

fn sockets() -> String {
    std::fs::read_to_string("/proc/net/unix").unwrap()
}

#[test]
#[ignore = "needs DPDK"]
fn a_killed_process_leaves_no_file_and_no_socket() {
    let before = traces();
    let child = Child::start("is killed");
    let id = child.line();
    let socket = socket_of(&id);
    assert!(sockets().contains(&socket), "the device waits for its peer");
    child.kill();
    until(|| !sockets().contains(&socket));
    assert!(!Path::new(&format!("/var/run/dpdk/dunlin-{id}")).exists());
    let mut after = traces();
    // Other programs may make files meanwhile.
    after.retain(|path| path.contains(&id) || path.contains("memif"));
    after.retain(|path| !before.contains(path));
    assert!(after.is_empty(), "{after:?}");
}
