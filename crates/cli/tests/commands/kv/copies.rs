//! Copies of a memcached that are interrupted, and completed later, and copies to a file that lack
//! items. The memcached is played: it stops in the middle of its items until the test lets it
//! continue.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};

use dunlin_testkit::folder::Folder;

use super::{Server, dunlin, interrupt};

/// Items of the memcached.
const ITEMS: usize = 450;

/// Items that its first client gets before it waits.
const FIRST: usize = 200;

/// Answers a client's connection. Items are listed in another order for each client, as memcached
/// may do. `stop` is called with the number of items that connections have read so far.
fn serve(stream: TcpStream, order: usize, read: &AtomicUsize, stop: impl Fn(usize)) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    for line in BufReader::new(stream).lines() {
        let line = line.ok()?;
        let mut words = line.split(' ');
        match words.next()? {
            "mn" => write!(out, "MN\r\n").ok()?,
            "stats" => write!(out, "STAT curr_items {ITEMS}\r\nEND\r\n").ok()?,
            "lru_crawler" => {
                for at in 0..ITEMS {
                    let at = (at * 7 + order * 100) % ITEMS;
                    write!(
                        out,
                        "key=k{at} exp=-1 la=1 cas=1 fetch=no cls=1 size=60\r\n"
                    )
                    .ok()?;
                }
                write!(out, "END\r\n").ok()?;
            }
            "mg" => {
                stop(read.fetch_add(1, Ordering::Relaxed));
                let key = words.next()?;
                write!(out, "VA {} f3\r\nv{key}\r\n", key.len() + 1).ok()?;
            }
            _ => return None,
        }
    }
    Some(())
}

/// Plays a memcached. Returns its address, a signal that it waits, and a way to let it go on.
fn play() -> (String, mpsc::Receiver<()>, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (waits, waiting) = mpsc::channel();
    let (go_on, going_on) = mpsc::channel();
    let (read, going_on) = (
        Arc::<AtomicUsize>::default(),
        Arc::new(std::sync::Mutex::new(going_on)),
    );
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (read, waits, going_on) = (Arc::clone(&read), waits.clone(), Arc::clone(&going_on));
            let stop = move |items| {
                if items == FIRST {
                    let _ = waits.send(());
                    let _ = going_on.lock().unwrap().recv();
                }
            };
            // A client has two connections.
            std::thread::spawn(move || serve(stream.unwrap(), number / 2, &read, stop));
        }
    });
    (address, waiting, go_on)
}

#[test]
fn an_interrupted_copy_is_completed_without_what_is_there() {
    let server = Server::start(&["--memory", "8MiB"]);
    let (from, waiting, go_on) = play();
    let args = ["kv", "load", "--from", &from, "--server", &server.address];
    let load = dunlin(&args).stderr(Stdio::piped()).spawn().unwrap();
    waiting.recv().unwrap();
    interrupt(&load);
    go_on.send(()).unwrap();
    let output = load.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{errors}");
    assert!(
        errors.contains("200 items are loaded; `--skip-existing` loads"),
        "{errors}"
    );
    assert_eq!(server.object(&["stats"])["items"], FIRST);
    // A client changes an item that is already copied, and memcached's first item is number 0.
    server.text(&["set", "k0", "changed"]);
    let shown = server.text(&["load", "--from", &from, "--skip-existing"]);
    assert_eq!(shown, "250 items are loaded, 200 were there already\n");
    assert_eq!(server.object(&["stats"])["items"], ITEMS);
    assert_eq!(
        server.text(&["get", "k0", "k449"]),
        "k0\tchanged\nk449\tvk449\n"
    );
    // Without the option, the copy begins anew.
    let shown = server.text(&["load", "--from", &from]);
    assert_eq!(shown, "450 items are loaded\n");
    assert_eq!(server.text(&["get", "k0"]), "vk0\n");
}

#[test]
fn a_dump_names_and_counts_the_items_that_no_message_can_carry() {
    const LONG: usize = 12;
    let folder = Folder::new("left-out");
    let (settings, socket) = (folder.path("dunlin.toml"), folder.path("socket"));
    std::fs::write(&settings, "[endpoint]\nmax_message = \"8 KiB\"\n").unwrap();
    let server = Server::start(&[
        "--config",
        &settings,
        "--memory",
        "8MiB",
        "--memcached",
        &socket,
    ]);
    let mut memcached = UnixStream::connect(&socket).unwrap();
    let value = "x".repeat(8192);
    for number in 0..LONG {
        write!(memcached, "set long{number} 0 0 8192\r\n{value}\r\n").unwrap();
    }
    write!(memcached, "set short 0 0 1\r\ny\r\n").unwrap();
    let stored = BufReader::new(&memcached).lines().take(LONG + 1);
    assert!(stored.map(Result::unwrap).all(|line| line == "STORED"));

    let dump = folder.path("dump");
    let errors = server.failure(&["dump", &dump]);
    let named = errors.matches("is left out: ").count();
    assert_eq!(named, 10, "only the first are named: {errors}");
    let counted = format!("{dump} has 1 items; {LONG} are left out");
    assert!(errors.contains(&counted), "{errors}");
    // The file is a whole dump of the others.
    let other = Server::start(&["--memory", "8MiB"]);
    assert_eq!(other.object(&["load", &dump])["loaded"], 1);
    assert_eq!(other.text(&["get", "short"]), "y\n");
}
