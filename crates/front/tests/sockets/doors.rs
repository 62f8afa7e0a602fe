//! Places: UNIX sockets, and ports in use.

use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};

use dunlin_front::{Door, DoorAddress, Options};
use dunlin_testkit::folder::Folder;

use super::server::Running;

fn place(folder: &Folder) -> DoorAddress {
    DoorAddress::Unix(folder.join("socket"))
}

#[test]
fn a_unix_socket_serves_and_goes_away_with_its_server() {
    let folder = Folder::new("front-serves");
    let server = Running::at(&place(&folder), Options::default());
    let mode = std::fs::metadata(folder.join("socket"))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o700);
    let mut client = UnixStream::connect(folder.join("socket")).unwrap();
    client.write_all(b"mn\r\nstats conns\r\nquit\r\n").unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("MN\r\nSTAT 1:addr unix\r\n"), "{answer}");
    drop(server);
    assert!(!folder.join("socket").exists());
}

#[test]
fn a_socket_without_a_server_is_replaced_and_no_other_file_is() {
    let folder = Folder::new("front-replaced");
    drop(UnixListener::bind(folder.join("socket")).unwrap());
    let door = Door::open(&place(&folder)).unwrap();
    let refused = Door::open(&place(&folder)).unwrap_err();
    let text = format!(
        "another server listens at {}",
        folder.join("socket").display()
    );
    assert_eq!(refused.to_string(), text);
    assert!(folder.join("socket").exists());
    drop(door);
    std::fs::write(folder.join("socket"), "a letter").unwrap();
    Door::open(&place(&folder)).unwrap_err();
    assert_eq!(std::fs::read(folder.join("socket")).unwrap(), b"a letter");
}

#[test]
fn a_port_in_use_is_named() {
    let door = Door::open(&DoorAddress::Tcp("127.0.0.1:0".into())).unwrap();
    let place = door.place();
    let refused = Door::open(&place).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!("another server listens at {place}")
    );
    assert!(refused.source().is_some());
    let nowhere = Door::open(&DoorAddress::Tcp("192.0.2.1:0".into())).unwrap_err();
    assert_eq!(nowhere.to_string(), "cannot listen at 192.0.2.1:0");
}
