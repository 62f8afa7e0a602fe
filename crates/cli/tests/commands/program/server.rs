//! A server process that a `dunlin` command starts, and commands of clients that run against it.
//! Dropping the [`Server`] kills the process.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Output};

use serde_json::Value;

use crate::program::dunlin;

pub(crate) struct Server {
    /// The command, such as `index`.
    command: &'static str,
    child: Child,
    out: BufReader<ChildStdout>,
    /// The line that it writes when it listens.
    pub(crate) greeting: Value,
    pub(crate) address: String,
}

impl Server {
    /// Starts a server at a free port.
    pub(crate) fn start(command: &'static str, args: &[&str]) -> Self {
        let first = [command, "serve", "--listen", "127.0.0.1:0", "--json"];
        let mut child = dunlin(&[&first[..], args].concat()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let greeting: Value = serde_json::from_str(&line).unwrap();
        Self {
            command,
            address: greeting["listening"].as_str().unwrap().to_owned(),
            greeting,
            child,
            out,
        }
    }

    /// The number of its process.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Runs a command against this server.
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        let last = ["--server", &self.address, "--timeout", "30"];
        let mut command = dunlin(&[&[self.command], args, &last].concat());
        command.output().unwrap()
    }

    /// The output of a command that must succeed.
    pub(crate) fn text(&self, args: &[&str]) -> String {
        let output = self.run(args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{args:?}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The message of a command that must fail with this exit code.
    pub(crate) fn failure(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.id().to_string();
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.unwrap().success());
    }

    /// Presses Ctrl-C, and returns the server's output after its greeting.
    pub(crate) fn end(mut self) -> String {
        self.signal("-INT");
        let mut report = String::new();
        self.out.read_to_string(&mut report).unwrap();
        assert_eq!(self.wait().0, Some(0));
        report
    }

    /// Waits until the server ends. Returns its exit code and its messages.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let mut said = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut said).unwrap();
        (self.child.wait().unwrap().code(), said)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
