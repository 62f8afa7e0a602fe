//! The two servers that get the same scripts: Debian's `memcached`, on a UNIX socket in a folder of
//! its own, and a [`Connection`] with its table in this process.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use dunlin_memcached::{Alone, Connection, Process, Users, Wants};
use dunlin_store::{Config, Mode, Region, Seconds, Seed, Table};
use dunlin_testkit::folder::Folder;

/// How long the test waits for memcached's next bytes. No script takes this long.
const SILENCE: Duration = Duration::from_secs(5);

/// The last command. Its answer shows that a server has read everything.
const LAST: &[u8] = b"mg end.of.script k\r\n";
const LAST_ANSWER: &[u8] = b"EN kend.of.script\r\n";

/// Both servers, which get the same commands.
pub(crate) struct Pair {
    theirs: Theirs,
    ours: Alone,
}

/// The answers of both servers to one script.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Answers {
    pub(crate) ours: Vec<u8>,
    pub(crate) theirs: Vec<u8>,
}

struct Theirs {
    child: Child,
    folder: Folder,
}

impl Pair {
    /// Starts both; `None` if `memcached` is not installed.
    pub(crate) fn start(name: &str) -> Option<Self> {
        let theirs = Theirs::start(name, &[])?;
        let ours = ours(Mode::Cache, 64 << 20);
        Some(Self { theirs, ours })
    }

    /// Starts two servers that never evict an item, and writes items to both until neither has
    /// room; `None` if `memcached` is not installed. Keys are `fill8000000` and so on, with values
    /// of eight digits.
    pub(crate) fn start_full(name: &str) -> Option<Self> {
        // The least memory with which memcached starts.
        let theirs = Theirs::start(name, &["-M", "-m", "2", "-I", "512k"])?;
        let mut ours = ours(Mode::Store, 64 << 10);
        fill(|script| theirs.ask(script, |_| false));
        let now = theirs.now();
        fill(|script| ask(&mut ours, script, now));
        Some(Self { theirs, ours })
    }

    /// Runs a script on both servers. If memcached's clock ticks meanwhile, tries again, up to ten
    /// times in all. `write` makes the script of each attempt.
    pub(crate) fn run(&mut self, write: impl Fn(u32) -> Vec<u8>) -> (Vec<u8>, Answers) {
        for attempt in 0.. {
            let script = write(attempt);
            let before = self.theirs.now();
            let theirs = self.theirs.ask(&script, |_| false);
            let now = self.theirs.now();
            let ours = ask(&mut self.ours, &script, now);
            if before == now || attempt == 9 {
                return (script, Answers { ours, theirs });
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Runs a script on both servers. Reads memcached's answers only until `is_enough` returns
    /// true, because some answers never end.
    pub(crate) fn begin(&mut self, script: &[u8], is_enough: impl Fn(&[u8]) -> bool) -> Answers {
        let theirs = self.theirs.ask(script, is_enough);
        let now = self.theirs.now();
        let ours = ask(&mut self.ours, script, now);
        Answers { ours, theirs }
    }
}

fn ours(mode: Mode, memory: usize) -> Alone {
    let config = Config {
        mode,
        seed: Seed::new([3, 4]),
        first_version: 1,
    };
    let table = Table::new(Region::new(memory).unwrap(), config).unwrap();
    Alone::new(table, Process::default())
}

/// Writes items until one is refused, and then smaller ones, for which there may still be room.
fn fill(mut ask: impl FnMut(&[u8]) -> Vec<u8>) {
    for value in ["12345678", "1", ""] {
        let len = value.len();
        let set = |number| format!("set fill{len}{number:06} 0 0 {len}\r\n{value}\r\n");
        let script = |from| (from..from + 100).map(set).collect::<String>();
        let is_full = (0..1000_u32)
            .any(|number| ask(script(100 * number).as_bytes()).starts_with(b"SERVER_ERROR"));
        assert!(is_full, "all items have room");
    }
}

/// Our answers.
fn ask(server: &mut Alone, script: &[u8], now: Seconds) -> Vec<u8> {
    let mut connection = Connection::new(None::<std::sync::Arc<Users>>);
    let bytes = [script, LAST].concat();
    let (mut rest, mut answers) = (&bytes[..], Vec::new());
    loop {
        let taken = connection.receive(rest);
        rest = &rest[taken..];
        let wants = connection.run(server, now);
        answers.extend_from_slice(connection.output());
        connection.sent(connection.output().len());
        let is_done = wants == Wants::Input && rest.is_empty();
        if is_done || connection.is_over() {
            return answers;
        }
    }
}

impl Theirs {
    fn start(name: &str, options: &[&str]) -> Option<Self> {
        let folder = Folder::new(name);
        let child = Command::new("memcached")
            .args(["-p", "0", "-U", "0", "-u", "root", "-t", "1"])
            .args(options)
            .arg("-s")
            .arg(folder.join("socket"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match child {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => return None,
            Err(error) => panic!("memcached does not start: {error}"),
        };
        let theirs = Self { child, folder };
        let begin = Instant::now();
        while UnixStream::connect(theirs.folder.join("socket")).is_err() {
            assert!(
                begin.elapsed() < Duration::from_secs(10),
                "no socket appears"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        Some(theirs)
    }

    /// Sends a script to memcached and returns the answers. Stops reading when the last command is
    /// answered, when `is_enough` returns true, or when memcached closes the connection or stays
    /// silent for [`SILENCE`].
    fn ask(&self, script: &[u8], is_enough: impl Fn(&[u8]) -> bool) -> Vec<u8> {
        let mut socket = UnixStream::connect(self.folder.join("socket")).unwrap();
        socket.set_read_timeout(Some(SILENCE)).unwrap();
        let bytes = [script, LAST].concat();
        let mut writer = socket.try_clone().unwrap();
        let writing = std::thread::spawn(move || {
            // A server that closes early does not read everything.
            let _ = writer.write_all(&bytes);
        });
        let (mut answers, mut piece) = (Vec::new(), [0; 65536]);
        loop {
            match socket.read(&mut piece) {
                Ok(0) => break,
                Ok(len) => answers.extend_from_slice(&piece[..len]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("their socket: {error}"),
            }
            if answers.ends_with(LAST_ANSWER) || is_enough(&answers) {
                break;
            }
        }
        drop(socket);
        writing.join().unwrap();
        answers
    }

    /// memcached's clock: seconds since 1970.
    fn now(&self) -> Seconds {
        let stats = String::from_utf8(self.ask(b"stats\r\n", |_| false)).unwrap();
        let line = stats
            .lines()
            .find_map(|line| line.strip_prefix("STAT time "));
        Seconds(line.unwrap().parse().unwrap())
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
