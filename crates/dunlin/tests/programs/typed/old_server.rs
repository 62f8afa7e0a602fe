//! Metadata for a server that knows none: the binary of the last commit before metadata, which
//! `tools/old-server/build.sh` builds, and which the variable `DUNLIN_OLD_SERVER` names.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use dunlin::service::{Failure, Fixed};
use dunlin::{Auto, Local, Nexus, Ran, Tasks, service};
use zerocopy::little_endian::U64;

use crate::typed::PATIENCE;

const SERVER: &str = "DUNLIN_OLD_SERVER";

/// Bytes of a front before its entries, and of an entry with a key of one character before its
/// value.
const HEAD: usize = 8;
const ENTRY: usize = 4;

/// The service of `tools/old-server/main.rs`.
#[service(codec = Fixed)]
trait Old {
    #[method(1)]
    fn next(number: U64) -> U64;

    #[method(2)]
    fn patience(number: U64) -> U64;

    #[method(3)]
    fn runs(number: U64) -> U64;
}

/// A process of the old server.
struct Process {
    child: Child,
    address: String,
}

impl Process {
    fn start() -> Self {
        let program = std::env::var_os(SERVER);
        let program = program.expect("DUNLIN_OLD_SERVER names no server");
        let mut child = Command::new(program)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut address).unwrap();
        let address = address.trim().to_owned();
        Self { child, address }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A value with which a front has this length.
fn value(front: usize) -> String {
    "v".repeat(front - HEAD - ENTRY)
}

#[test]
#[ignore = "tools/old-server/build.sh builds the server, for minutes"]
fn a_server_that_knows_no_metadata_ignores_short_metadata_and_refuses_long_metadata() {
    let server = Process::start();
    let nexus = Nexus::bind("127.0.0.1:0").unwrap();
    let mut local: Local<Auto> = Local::new(nexus.endpoint(Tasks::default()).unwrap());
    let session = local.connect(server.address.as_str()).unwrap();
    local.block_on(|cx| async move {
        let old = OldClient::new(cx, session);
        let number = U64::new(7);
        for front in [HEAD + ENTRY, 100, 254, 255] {
            let runs = old.runs(&number).await.unwrap().get();
            let call = old.next(&number).meta("k", &value(front)).unwrap();
            let next = call.await;
            println!("{front} bytes in front of the message: {next:?}");
            assert_eq!(next, Ok(U64::new(8)));
            // The deadline, which the old server knows, is read although metadata follow it.
            let call = old.patience(&number).meta("k", &value(front)).unwrap();
            let left = call.deadline(PATIENCE).await.unwrap().get();
            assert!((1..=10_000_000).contains(&left), "{left}");
            assert_eq!(old.runs(&number).await.unwrap().get(), runs + 2);
        }
        for front in [256, 257, 500, 984] {
            let runs = old.runs(&number).await.unwrap().get();
            let call = old.next(&number).meta("k", &value(front)).unwrap();
            let next = call.await;
            println!("{front} bytes in front of the message: {next:?}");
            // The code proves nothing, because a server without the bit of W13 sent it.
            assert_eq!(next, Err(Failure::BadRequest(Ran::Unknown)));
            assert_eq!(old.runs(&number).await.unwrap().get(), runs, "nothing ran");
        }
    });
}
