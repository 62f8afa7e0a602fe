//! The packets and counters of a server, as other processes of its host see them. A reader that is
//! killed leaves no bytes of packets in the server's file. A process of another user cannot open
//! the file; over the control plane it gets at most counters, like a peer with a session.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dunlin_insight::{FindError, Remote, Snapshot, Trace, Whereabouts};
use dunlin_nexus::{InsightTcp, Nexus};
use dunlin_testkit::skip;
use dunlin_testkit::stranger::{frame, hello, insight_read};
use dunlin_testkit::user::STRANGER;
use dunlin_transport::shm::Shm;
use dunlin_transport::udp::Udp;
use dunlin_wire::control::Features;

use super::child::{Server, say};
use super::floods::Ending;
use super::relay::{ask, connect_unix};
use super::stranger::Stranger;
use super::{REVERSE, endpoint, finish, issue};

/// The data of a request, which fill whole words of the file.
const SECRET: [u8; 16] = *b"for its reader's";

/// Time for a step that is not measured.
const LIMIT: Duration = Duration::from_secs(10);

/// The counters file of a process.
fn file_of(process: u32) -> std::path::PathBuf {
    let mut found = dunlin_insight::of_process(process).unwrap();
    found.swap_remove(0).path
}

/// Whether a server's file has the bytes of a request.
fn has_secret(server: &Server) -> bool {
    let bytes = std::fs::read(file_of(server.id())).unwrap();
    let (words, _) = bytes.as_chunks::<8>();
    let (first, second) = SECRET.split_at(8);
    words
        .windows(2)
        .any(|pair| pair[0] == first && pair[1] == second)
}

#[test]
fn packets_are_wiped_within_a_second_when_their_reader_is_killed() {
    let server = Server::start::<Shm>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Shm>(&nexus);
    let session = rpc.connect_blocking(server.address).unwrap();
    let mut wiped_after = || {
        let reader = Server::reader(server.id());
        let begun = Instant::now();
        while !has_secret(&server) {
            assert!(begun.elapsed() < LIMIT, "there is no trace");
            issue(&mut rpc, session, REVERSE, &SECRET);
            finish(&mut rpc, LIMIT);
        }
        rpc.run_for(Duration::from_millis(1_200));
        assert!(has_secret(&server), "the reader is alive");
        reader.signal(libc::SIGKILL);
        let killed = Instant::now();
        while has_secret(&server) {
            assert!(killed.elapsed() < LIMIT, "the packets stay for ever");
            rpc.run_for(Duration::from_millis(10));
        }
        killed.elapsed()
    };
    // A busy machine may delay two of the three measurements.
    let times = [(); 3].map(|()| wiped_after());
    assert!(
        times.iter().min() < Some(&Duration::from_secs(1)),
        "{times:?}"
    );
}

/// The program of a reader.
pub(super) fn read(process: u32) {
    let found = dunlin_insight::of_process(process).unwrap().swap_remove(0);
    let mut trace = Trace::begin(&found, None, 200).unwrap();
    say("address 127.0.0.1:0");
    loop {
        trace.still_wanted().unwrap();
        trace.take(|_| {}).unwrap();
        std::thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_process_of_another_user_sees_counters_at_most() {
    // SAFETY: the call only returns a number.
    if unsafe { libc::geteuid() } != 0 {
        return skip("only root can be another user");
    }
    let server = Server::start::<Shm>(0);
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut rpc = endpoint::<Shm>(&nexus);
    rpc.connect_blocking(server.address).unwrap();
    let unix_name = ask(server.address).unix_name;
    // A process of this user sees the session with its peer's place, and gets an answer at the
    // socket.
    let here = server_row(&mut File::open(file_of(server.id())).unwrap());
    assert_ne!(here, Some(Whereabouts::default()));
    assert!(is_answered(&unix_name));
    let mut stranger = Server::stranger(&server, &file_of(server.id()), &unix_name);
    assert_eq!(stranger.expect("directory"), "forbidden");
    assert_eq!(stranger.expect("file"), "forbidden");
    assert_eq!(stranger.expect("socket"), "closed");
    assert_eq!(stranger.expect("place"), "unknown");
}

/// The place of the peer of a server's first session.
fn server_row(source: &mut impl dunlin_insight::Source) -> Option<Whereabouts> {
    let snapshot = Snapshot::read(source).unwrap();
    let sessions = snapshot.endpoints.iter().flat_map(|found| &found.sessions);
    sessions.map(|row| row.place).next()
}

/// Makes a session with a server whose option `insight.tcp` is `shown`. Returns all of the server's
/// counters that the session's connection can read.
fn read_with_session(shown: InsightTcp) -> Vec<u8> {
    let nexus = Nexus::builder().without_unix(true).insight_tcp(shown);
    let nexus = nexus.bind("127.0.0.1:0").unwrap();
    let address = nexus.address();
    let own = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (over, begun) = (AtomicBool::new(false), Barrier::new(2));
    std::thread::scope(|scope| {
        let _ending = Ending(&over);
        let (ended, serves) = (&over, &begun);
        scope.spawn(move || {
            let mut rpc = endpoint::<Udp>(&nexus);
            serves.wait();
            rpc.run_until(|_| ended.load(Ordering::Relaxed));
        });
        begun.wait();
        let mut stranger = Stranger::greet(address, Features::FOREIGN);
        stranger.ask(own.local_addr().unwrap()).unwrap();
        // The server writes the rows of sessions only ten times a second.
        std::thread::sleep(Duration::from_millis(500));
        stranger.read_counters()
    })
}

#[test]
fn a_session_lets_its_connection_read_no_more() {
    assert_eq!(read_with_session(InsightTcp::Off).len(), 0);
    let counters = read_with_session(InsightTcp::Counters);
    let place = server_row(&mut &counters[..]);
    assert_eq!(place, Some(Whereabouts::default()));
}

/// Whether a process gets an answer at a UNIX socket.
fn is_answered(name: &str) -> bool {
    let mut stream = connect_unix(name);
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    // The server may already have closed it.
    let _ = stream.write_all(&[frame(&hello(1)), insight_read()].concat());
    stream.read(&mut [0; 512]).is_ok_and(|got| got > 0)
}

/// The program of a process of another user.
pub(super) fn look_as_stranger(server: SocketAddr, words: &[&str]) {
    let [process, path, name] = words else {
        panic!("{words:?}");
    };
    // SAFETY: plain numbers; the calls concern all threads of this process.
    let done = unsafe {
        libc::setgroups(0, std::ptr::null()) | libc::setgid(STRANGER) | libc::setuid(STRANGER)
    };
    assert_eq!(done, 0, "only root can be another user");
    say("address 127.0.0.1:0");
    let verdict = |is_forbidden| ["open", "forbidden"][usize::from(is_forbidden)];
    let found = dunlin_insight::of_process(process.parse().unwrap());
    let is_forbidden = matches!(found, Err(FindError::Forbidden(_)));
    say(&format!("directory {}", verdict(is_forbidden)));
    say(&format!("file {}", verdict(File::open(path).is_err())));
    let closed = ["closed", "answered"][usize::from(is_answered(name))];
    say(&format!("socket {closed}"));
    let place = server_row(&mut Remote::connect(&server.to_string()).unwrap());
    assert!(place.is_some(), "the counters are switched on");
    let known = ["unknown", "known"][usize::from(place != Some(Whereabouts::default()))];
    say(&format!("place {known}"));
}
