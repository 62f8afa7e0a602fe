//! A server in a process of its own.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use dunlin_control::PlaneConfig;
use dunlin_core::{Nanos, SessionEvent, SessionOffer};
use dunlin_nexus::{InsightTcp, Nexus, Open};
use dunlin_transport::auto::Auto;
use dunlin_transport::networks::Networks;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;
use dunlin_wire::{SessionNum, Token};

use super::{BACKGROUND, NEVER, REVERSE, endpoint, exchange, issue};

const VARIABLE: &str = "DUNLIN_TEST_CHILD";

/// Transports that a child can use.
pub(super) trait Named: Open {
    const NAME: &'static str;
}

impl Named for Shm {
    const NAME: &'static str = "shm";
}

impl Named for Auto {
    const NAME: &'static str = "auto";
}

impl Named for Udp {
    const NAME: &'static str = "udp";
}

/// A running child; killed when dropped.
pub(super) struct Server {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts a server at this port of the loopback address. If it is 0, the system chooses a port.
    pub(super) fn start<T: Named>(port: u16) -> Self {
        Self::start_at::<T>(&format!("127.0.0.1:{port}"))
    }

    /// Starts a server at an address.
    pub(super) fn start_at<T: Named>(address: &str) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("server {} {address}", T::NAME))
    }

    /// Starts a server at an address, with these [`Limits`] of its process and nexus.
    pub(super) fn start_limited<T: Named>(address: &str, limits: &str) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("server {} {address} {limits}", T::NAME))
    }

    /// Starts a client that asks the server at this address again and again for an answer that the
    /// server never gives.
    pub(super) fn client<T: Named>(server: SocketAddr) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("client {} {server}", T::NAME))
    }

    /// Starts a relay to the server at this address. Its Hello claims to each client that it is
    /// that server.
    pub(super) fn relay(server: SocketAddr) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("relay {} {server}", Shm::NAME))
    }

    /// Starts a client of the relay at this address. It sends a request of `len` bytes; while the
    /// server with this process id reads it, the client overwrites all memory that they share.
    pub(super) fn liar(relay: SocketAddr, server: u32, len: usize) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("liar {} {relay} {server} {len}", Shm::NAME))
    }

    /// Starts a client that fills the doorbell of the server at this address with `byte`, again and
    /// again.
    pub(super) fn bell_writer(server: SocketAddr, byte: u8) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("bell {} {server} {byte}", Shm::NAME))
    }

    /// Starts a process that sends requests to itself, and forks while its handler runs.
    pub(super) fn forker() -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("forker {} 127.0.0.1:0", Shm::NAME))
    }

    /// Starts a process that reads all packets of the server with this process id.
    pub(super) fn reader(server: u32) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("reader {} 127.0.0.1:0 {server}", Shm::NAME))
    }

    /// Starts a process of another user, which tries to read all that it can of a server: its
    /// counters file `file`, and its socket `name`.
    pub(super) fn stranger(server: &Self, file: &Path, name: &str) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        let (shm, address, process) = (Shm::NAME, server.address, server.id());
        let (file, name) = (file.display(), name.trim_start_matches('\0'));
        Self::spawn(
            this,
            format!("stranger {shm} {address} {process} {file} {name}"),
        )
    }

    /// Starts a client that makes one call, disconnects, and stays.
    pub(super) fn visitor<T: Named>(server: SocketAddr) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("visitor {} {server}", T::NAME))
    }

    /// Starts a client that calls the server at this address as fast as it can.
    pub(super) fn load<T: Named>(server: SocketAddr) -> Self {
        let this = Command::new(std::env::current_exe().unwrap());
        Self::spawn(this, format!("load {} {server}", T::NAME))
    }

    fn spawn(mut command: Command, role: String) -> Self {
        let mut child = command
            .args(["--exact", "child", "--nocapture", "--test-threads=1"])
            .env(VARIABLE, role)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let address = expect(&mut lines, "address").parse().unwrap();
        Self {
            child,
            lines,
            address,
        }
    }

    /// Waits for the next line of the child that begins with `word`, and returns its rest.
    pub(super) fn expect(&mut self, word: &str) -> String {
        expect(&mut self.lines, word)
    }

    pub(super) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits for the next session that the server accepts. Returns its number and token in packets
    /// to the server.
    pub(super) fn accepted(&mut self) -> (SessionNum, Token) {
        let line = self.expect("accepted");
        let (session, token) = line.split_once(' ').unwrap();
        let [session, token] = [session, token].map(|number| number.parse().unwrap());
        (SessionNum(session), Token(token))
    }

    /// The UDP ports of the process.
    pub(super) fn udp_ports(&self) -> Vec<u16> {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.id())).unwrap();
        let files = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        let sockets: Vec<_> = files.map(|link| link.display().to_string()).collect();
        let table = std::fs::read_to_string(format!("/proc/{}/net/udp", self.id())).unwrap();
        let port = |line: &str| {
            let fields: Vec<_> = line.split_whitespace().collect();
            let owned = sockets.contains(&format!("socket:[{}]", fields[9]));
            let (_, port) = fields[1].split_once(':')?;
            owned.then(|| u16::from_str_radix(port, 16).unwrap())
        };
        table.lines().skip(1).filter_map(port).collect()
    }

    pub(super) fn signal(&self, signal: i32) {
        let id = i32::try_from(self.child.id()).unwrap();
        // SAFETY: the child is ours and has not been waited for.
        assert_eq!(unsafe { libc::kill(id, signal) }, 0);
    }

    /// Stops the process, and waits until it has stopped.
    pub(super) fn stop(&self) {
        self.signal(libc::SIGSTOP);
        let tasks = format!("/proc/{}/task", self.id());
        let is_stopped = |task: std::fs::DirEntry| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit(')')
                .next()
                .is_none_or(|rest| rest.trim_start().starts_with('T'))
        };
        while !std::fs::read_dir(&tasks)
            .unwrap()
            .all(|task| task.is_ok_and(is_stopped))
        {
            std::thread::yield_now();
        }
    }

    /// CPU time of all threads of the process.
    pub(super) fn cpu(&self) -> Duration {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.id())).unwrap();
        let nanos = tasks.filter_map(|task| {
            let stat = std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok()?;
            stat.split(' ').next()?.parse::<u64>().ok()
        });
        Duration::from_nanos(nanos.sum())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn expect(lines: &mut impl BufRead, word: &str) -> String {
    loop {
        let mut line = String::new();
        assert_ne!(
            lines.read_line(&mut line).unwrap(),
            0,
            "the child ended before {word:?}"
        );
        // The test harness prints before the child does, without ending its line.
        if let Some((_, rest)) = line.split_once(&format!("#{word} ")) {
            return rest.trim().to_owned();
        }
    }
}

/// Runs as a child, if this process is one.
pub(super) fn main_if_asked() {
    let Ok(asked) = std::env::var(VARIABLE) else {
        return;
    };
    let words: Vec<&str> = asked.split(' ').collect();
    let address = words[2].parse().unwrap();
    match words[1] {
        Shm::NAME => play::<Shm>(words[0], address, &words[3..]),
        Auto::NAME => play::<Auto>(words[0], address, &words[3..]),
        _ => play::<Udp>(words[0], address, &words[3..]),
    }
}

fn play<T: Open>(role: &str, address: SocketAddr, limits: &[&str]) {
    match role {
        "server" => serve::<T>(address, &Limits::new(limits)),
        "client" => ask::<T>(address),
        "visitor" => visit::<T>(address),
        "relay" => relay(address),
        "forker" => fork(),
        "reader" => super::traced::read(limits[0].parse().unwrap()),
        "stranger" => super::traced::look_as_stranger(address, limits),
        "bell" => write_bells(address, limits[0].parse().unwrap()),
        "liar" => lie(address, limits),
        _ => load::<T>(address),
    }
}

/// `descriptors=N`: limit of the process; `links=N`: limit of its nexus; `timeout=N`: timeout of
/// its failure detector, in milliseconds; `taken=1`: the child takes all remaining descriptors once
/// it serves; `allow=NETWORK`: its packets may go to this network.
#[derive(Default)]
struct Limits {
    descriptors: Option<u64>,
    links: Option<u64>,
    timeout: Option<u64>,
    taken: Option<u64>,
    allow: Networks,
}

impl Limits {
    fn new(words: &[&str]) -> Self {
        let mut limits = Self::default();
        for word in words {
            let (name, number) = word.split_once('=').unwrap();
            if name == "allow" {
                limits.allow = number.parse().unwrap();
                continue;
            }
            let limit = match name {
                "descriptors" => &mut limits.descriptors,
                "links" => &mut limits.links,
                "timeout" => &mut limits.timeout,
                _ => &mut limits.taken,
            };
            *limit = Some(number.parse().unwrap());
        }
        limits
    }
}

fn serve<T: Open>(address: SocketAddr, limits: &Limits) {
    if let Some(descriptors) = limits.descriptors {
        limit_descriptors(descriptors);
    }
    let builder = Nexus::builder();
    let builder = builder.insight_tcp(InsightTcp::Counters);
    let mut config = PlaneConfig::default();
    if let Some(links) = limits.links {
        config.max_links = usize::try_from(links).unwrap();
    }
    if let Some(timeout) = limits.timeout {
        config.heartbeat.timeout = Nanos::from_millis(timeout);
    }
    let builder = builder.allow_peers(limits.allow.clone());
    let nexus = builder.limits(config).bind(address).unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    let mut taken = Vec::new();
    while let (Some(_), Ok(file)) = (limits.taken, std::fs::File::open("/dev/null")) {
        taken.push(file);
    }
    say(&format!("address {}", nexus.address()));
    loop {
        rpc.run_once();
        for event in std::mem::take(&mut rpc.app_mut().events) {
            match event {
                SessionEvent::Closed { reason, .. } => say(&format!("closed {reason:?}")),
                // A test that forges packets knows the token.
                SessionEvent::Accepted(session) => {
                    let offer = rpc.engine_mut().lifecycle().offer_of(session);
                    let SessionOffer { session, token, .. } = offer.unwrap();
                    say(&format!("accepted {} {}", session.0, token.0));
                }
                SessionEvent::Connected(_) => {}
            }
        }
    }
}

fn ask<T: Open>(server: SocketAddr) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    say(&format!("address {}", nexus.address()));
    let session = rpc.connect_blocking(server).unwrap();
    for _ in 0..5 {
        issue(&mut rpc, session, NEVER, b"please");
    }
    loop {
        rpc.run_once();
    }
}

fn visit<T: Open>(server: SocketAddr) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    say(&format!("address {}", nexus.address()));
    let session = rpc.connect_blocking(server).unwrap();
    exchange(&mut rpc, session, REVERSE);
    rpc.disconnect(session).unwrap();
    rpc.run_for(Duration::from_millis(20));
    say("done .");
    loop {
        rpc.run_once();
    }
}

fn relay(server: SocketAddr) {
    let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
    say(&format!("address {}", tcp.local_addr().unwrap()));
    super::relay::run(&tcp, server);
}

fn lie(relay: SocketAddr, words: &[&str]) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    say(&format!("address {}", nexus.address()));
    let (server, len) = (words[0].parse().unwrap(), words[1].parse().unwrap());
    super::liar::run(&nexus, relay, server, len);
}

fn fork() {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    say(&format!("address {}", nexus.address()));
    super::forked::run(&nexus);
}

fn write_bells(server: SocketAddr, byte: u8) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    say(&format!("address {}", nexus.address()));
    super::bell::run(&nexus, server, byte);
}

fn load<T: Open>(server: SocketAddr) {
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<T>(&nexus);
    say(&format!("address {}", nexus.address()));
    let sessions: Vec<_> = (0..4).map(|_| rpc.connect(server).unwrap()).collect();
    for turn in 0_usize.. {
        issue(
            &mut rpc,
            sessions[turn % 4],
            if turn % 16 == 0 { BACKGROUND } else { REVERSE },
            b"x",
        );
        if turn >= 24 {
            rpc.run_until(|rpc| !rpc.app().done.is_empty());
            assert_eq!(rpc.app_mut().done.pop().unwrap().result, Ok(()));
        }
    }
}

/// Lets this process have this number of descriptors, or as many as the system allows.
pub(super) fn limit_descriptors(wanted: u64) {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: `limit` lives until both calls return.
    let done = unsafe {
        libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
        limit.rlim_cur = wanted.min(limit.rlim_max);
        libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit)
    };
    assert_eq!(done, 0);
}

pub(super) fn say(text: &str) {
    let mut out = std::io::stdout().lock();
    // Errors are ignored: the parent may be gone.
    let _ = writeln!(out, "#{text}").and_then(|()| out.flush());
}
