//! Unmodified clients of memcached: libmemcached's tools, pymemcache and gomemcache. They get the
//! same answers as from Debian's `memcached`.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dunlin_testkit::folder::Folder;

use crate::memcached::Server;

/// Runs a program; `None` if it is not installed.
pub(crate) fn run(program: &str, args: &[&str]) -> Option<Output> {
    match Command::new(program).args(args).output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            dunlin_testkit::skip(&format!("{program} is not installed"));
            None
        }
        Err(error) => panic!("{program}: {error}"),
    }
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Everything that the tools of libmemcached print about the server at an address.
fn libmemcached(door: &str, folder: &Folder) -> String {
    let (host, port) = door.rsplit_once(':').unwrap();
    let servers = format!("--servers={door}");
    let [letter, long] = ["letter", "long"].map(|name| folder.path(name));
    let calls: [(&str, &[&str]); 9] = [
        ("memccapable", &["-a", "-h", host, "-p", port]),
        ("memccp", &[&servers, &letter, &long]),
        ("memccat", &[&servers, "letter"]),
        ("memccat", &[&servers, "letter", "none", "letter"]),
        ("memccat", &[&servers, "--flags", "letter"]),
        ("memccp", &[&servers, "--flags=7", "--add", &letter]),
        ("memccp", &[&servers, "--flags=7", "--replace", &letter]),
        ("memccat", &[&servers, "--flags", "letter"]),
        ("memccat", &[&servers, "long"]),
    ];
    let mut seen = String::new();
    for (program, args) in calls {
        let output = run(program, args).expect("they come in one package");
        let errors = String::from_utf8_lossy(&output.stderr).replace(door, "SERVER");
        let code = output.status.code();
        seen += &format!("{program}: {code:?}\n{}{errors}\n", text(&output));
    }
    seen
}

#[test]
fn the_tools_of_libmemcached_get_the_same_answers_as_from_memcached() {
    let (Some(_), Some(_)) = (run("memccat", &["--version"]), run("memcached", &["-V"])) else {
        return;
    };
    let folder = Folder::new("memccp");
    std::fs::write(folder.path("letter"), "Dear reader,").unwrap();
    std::fs::write(folder.path("long"), "long ".repeat(60_000)).unwrap();
    let server = Server::start(&["memcached", "-m", "8", "-t", "2", "-l", "127.0.0.1:0"]);
    let (_theirs, door) = Theirs::start_tcp();
    let ours = libmemcached(server.door(0), &folder);
    let theirs = libmemcached(&door, &folder);
    assert!(
        ours == theirs,
        "here:\n{ours:.4000}\nmemcached:\n{theirs:.4000}"
    );
    assert!(ours.contains("All tests passed\n"), "{ours:.4000}");
    assert_eq!(ours.matches("[pass]").count(), 27, "{ours:.4000}");
    assert!(ours.contains("Dear reader,") && ours.contains("long long"));
}

/// Debian's server.
pub(crate) struct Theirs(Child);

impl Theirs {
    /// Starts the server at a TCP port, and returns its address too.
    pub(crate) fn start_tcp() -> (Self, String) {
        // Other tests take ports of another address.
        let port = std::net::TcpListener::bind("127.0.0.77:0").unwrap();
        let address = port.local_addr().unwrap().to_string();
        drop(port);
        let options = ["-u", "root", "-U", "0", "-t", "1", "-l", &address];
        let child = Command::new("memcached").args(options).spawn().unwrap();
        let begin = Instant::now();
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(begin.elapsed() < Duration::from_secs(10), "no server");
            std::thread::sleep(Duration::from_millis(5));
        }
        (Self(child), address)
    }

    /// Starts the server at a UNIX socket.
    fn start(path: &str) -> Self {
        let child = Command::new("memcached")
            .args(["-u", "root", "-U", "0", "-t", "1", "-s", path])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let begin = Instant::now();
        while !Path::new(path).exists() {
            assert!(begin.elapsed() < Duration::from_secs(10), "no socket");
            std::thread::sleep(Duration::from_millis(5));
        }
        Self(child)
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn kv_load_copies_the_items_of_debians_memcached() {
    let Some(_) = run("memcached", &["-V"]) else {
        return;
    };
    let (_theirs, address) = Theirs::start_tcp();
    let socket = crate::memcached::tcp(&address);
    let items = (0..500).map(|n| format!("set a%{n} {n} 0 3 noreply\r\nabc\r\n"));
    let commands = format!("{}mn\r\nquit\r\n", items.collect::<String>());
    assert_eq!(crate::memcached::ask(socket, &commands), "MN\r\n");
    let to = Server::start(&["kv", "serve", "--memory", "8MiB", "--listen", "127.0.0.1:0"]);
    let kv = |args: &[&str]| {
        let all = [&["kv"], args, &["--server", to.native()]].concat();
        crate::memcached::dunlin(&all).output().unwrap()
    };
    let output = kv(&["load", "--from", &address]);
    assert_eq!(text(&output), "500 items are loaded\n", "{output:?}");
    assert_eq!(text(&kv(&["get", "a%17"])), "abc\n");
}

#[test]
fn pymemcache_gets_the_same_answers_as_from_memcached() {
    const SCRIPT: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/commands/memcached/pymemcache_script.py"
    );
    // The system's Python has the system's packages.
    let Some(imported) = run("/usr/bin/python3", &["-c", "import pymemcache"]) else {
        return;
    };
    if !imported.status.success() {
        return dunlin_testkit::skip("pymemcache is not installed");
    }
    let Some(_) = run("memcached", &["-V"]) else {
        return;
    };
    let folder = Folder::new("pymemcache");
    compare(&folder, 25, |socket| {
        run("/usr/bin/python3", &[SCRIPT, socket]).unwrap()
    });
}

#[test]
fn gomemcache_gets_the_same_answers_as_from_memcached() {
    const MODULE: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/commands/memcached/gomemcache"
    );
    let (Some(_), Some(_)) = (run("go", &["version"]), run("memcached", &["-V"])) else {
        return;
    };
    let folder = Folder::new("gomemcache");
    let program = folder.path("program");
    let mut go = Command::new("go");
    go.args(["build", "-mod=readonly", "-o", &program]);
    let built = go.current_dir(MODULE).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    compare(&folder, 45, |socket| run(&program, &[socket]).unwrap());
}

/// Runs a client against both servers. It must print the same lines for both, and more than `least`
/// lines.
fn compare(folder: &Folder, least: usize, client: impl Fn(&str) -> Output) {
    let (ours, theirs) = (folder.path("ours"), folder.path("theirs"));
    let _server = Server::start(&["memcached", "-m", "64", "-t", "2", "-s", &ours]);
    let _theirs = Theirs::start(&theirs);
    let answers = [ours, theirs].map(|socket| {
        let output = client(&socket);
        assert!(output.status.success(), "{output:?}");
        text(&output)
    });
    assert_eq!(answers[0], answers[1]);
    assert!(answers[0].lines().count() > least, "{}", answers[0]);
}
