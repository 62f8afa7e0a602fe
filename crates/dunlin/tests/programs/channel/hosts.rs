//! A name that the system at first does not know, then knows, and then no longer knows. The channel
//! runs in a child process with its own list of hosts.

use std::fs;
use std::net::ToSocketAddrs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use dunlin::ChannelError;
use dunlin_testkit::child::Child;

use crate::channel::server::{Role, Server};
use crate::channel::{ECHO, Way, block_on, until};

const NAME: &str = "comes-back.test";

/// Starts a program with the list of hosts in this folder, and without other sources of names.
const SCRIPT: &str = r#"#!/bin/sh
exec unshare --mount --propagation private sh -c '
    mount --bind "$0/hosts" /etc/hosts && mount --bind "$0/names" /etc/nsswitch.conf && exec "$@"
' FOLDER PROGRAM "$@"
"#;

/// A folder; removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("dunlin-hosts-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("names"), "hosts: files\n").unwrap();
        Self(folder)
    }

    fn set_hosts(&self, hosts: &str) {
        fs::write(self.0.join("hosts"), hosts).unwrap();
    }

    /// A child that sees these hosts.
    fn child(&self, role: &str) -> Child {
        let program = std::env::current_exe().unwrap();
        let script = SCRIPT.replace("FOLDER", self.0.to_str().unwrap());
        let script = script.replace("PROGRAM", program.to_str().unwrap());
        let path = self.0.join("start");
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Child::start_as(&path, role)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Calls the server at this port of [`NAME`], in a child.
pub(crate) fn call(port: &str) {
    let is_known = || (NAME, 0).to_socket_addrs().is_ok();
    assert!(!is_known());
    let channel = Way::Shm.channel(format!("{NAME}:{port}"));
    let channel = channel.lookup(Duration::from_millis(20));
    let channel = channel.patience(Duration::from_millis(200)).open().unwrap();
    let echo = || block_on(channel.call(ECHO, b"by name"));
    let error = echo().unwrap_err();
    assert!(matches!(error, ChannelError::NoServer(_)), "{error}");
    println!("#{error}");
    until(|| echo().is_ok());
    println!("#answered");
    until(|| !is_known());
    // Several look-ups fail, and the channel keeps the addresses that it found before.
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(echo().unwrap().data(), b"by name");
    println!("#kept");
}

#[test]
fn a_name_that_fails_is_looked_up_again_until_it_is_known() {
    let may = Command::new("unshare").args(["--mount", "true"]).status();
    if !may.is_ok_and(|status| status.success()) {
        return dunlin_testkit::skip("it needs root, for a list of hosts of its own");
    }
    let server = Server::start(Way::Shm, "127.0.0.1:0", Role::Answers);
    let folder = Folder::new();
    folder.set_hosts("127.0.0.1 localhost\n");
    let child = folder.child(&format!("Hosts {}", server.address.port()));
    let error = child.line();
    println!("{error}");
    folder.set_hosts(&format!("127.0.0.1 localhost {NAME}\n"));
    assert_eq!(child.line(), "answered");
    folder.set_hosts("127.0.0.1 localhost\n");
    assert_eq!(child.line(), "kept");
    assert!(child.wait().success());
}
