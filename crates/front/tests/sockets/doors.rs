//! Places: UNIX sockets, ports in use.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;

use dunlin_front::{Door, Options, Place};

use super::server::Running;

/// A path for a socket, alone in a folder.
struct Path(PathBuf);

impl Path {
    fn new(name: &str) -> Self {
        let folder = format!("dunlin-front-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    fn place(&self) -> Place {
        Place::Unix(self.0.join("socket"))
    }

    fn socket(&self) -> PathBuf {
        self.0.join("socket")
    }
}

impl Drop for Path {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_unix_socket_serves_and_goes_away_with_its_server() {
    let path = Path::new("serves");
    let server = Running::at(&path.place(), Options::default());
    let mode = std::fs::metadata(path.socket()).unwrap().permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let mut client = UnixStream::connect(path.socket()).unwrap();
    client.write_all(b"mn\r\nstats conns\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("MN\r\nSTAT 1:addr unix\r\n"), "{answer}");
    drop(server);
    assert!(!path.socket().exists());
}

#[test]
fn a_socket_without_a_server_is_replaced_and_no_other_file_is() {
    let path = Path::new("replaced");
    drop(UnixListener::bind(path.socket()).unwrap());
    let door = Door::open(&path.place()).unwrap();
    let refused = Door::open(&path.place()).unwrap_err();
    let text = format!("another server listens at {}", path.socket().display());
    assert_eq!(refused.to_string(), text);
    assert!(path.socket().exists());
    drop(door);
    std::fs::write(path.socket(), "a letter").unwrap();
    Door::open(&path.place()).unwrap_err();
    assert_eq!(std::fs::read(path.socket()).unwrap(), b"a letter");
}

#[test]
fn a_port_in_use_is_named() {
    let door = Door::open(&Place::Tcp("127.0.0.1:0".into())).unwrap();
    let place = door.place();
    let refused = Door::open(&place).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("another server listens at {place}")
    );
    assert!(refused.source().is_some());
    let nowhere = Door::open(&Place::Tcp("192.0.2.1:0".into())).unwrap_err();
    assert_eq!(nowhere.to_string(), "cannot listen at 192.0.2.1:0");
}
