//! The README and the first page of the book show the examples exactly, and the examples work.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// A server and a client have at most this number of lines each.
const LINES: usize = 20;

fn page(name: &str) -> String {
    let path = format!("{}/../../{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the page is there")
}

fn source(example: &str) -> String {
    let path = format!("{}/examples/{example}.rs", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).expect("the example is there")
}

/// The blocks of a page in this language.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let fence = format!("```{language}\n");
    let behind = page.split(&fence).skip(1);
    behind
        .map(|text| text.split("```").next().unwrap_or_default().to_owned())
        .collect()
}

#[test]
fn the_readme_shows_the_examples_as_they_are() {
    let shown = blocks(&page("README.md"), "rust");
    assert_eq!(shown, [source("hello_server"), source("hello_client")]);
    for block in shown {
        assert!(block.lines().count() <= LINES, "more than {LINES} lines");
    }
}

#[test]
fn the_book_begins_with_the_examples_as_they_are() {
    let shown = blocks(&page("docs/getting-started.md"), "rust,no_run");
    // The comparison leaves out the first line of each example, because the page itself describes
    // it.
    let code = |example| {
        source(example)
            .split_once('\n')
            .unwrap_or_default()
            .1
            .to_owned()
    };
    assert_eq!(shown, [code("hello_server"), code("hello_client")]);
}

#[test]
fn the_readme_shows_the_two_commands() {
    let shown = blocks(&page("README.md"), "sh").concat();
    let bench = "cargo run --release --no-default-features -- bench";
    for command in [bench, "cargo test --workspace"] {
        assert!(shown.lines().any(|line| line == command), "{command}");
    }
}

/// A program that ends with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Cargo builds the examples of a package with its tests, in a folder next to them.
fn example(name: &str) -> Command {
    let mut path: PathBuf = std::env::current_exe().expect("this program has a path");
    path.pop();
    path.set_file_name("examples");
    path.push(name);
    assert!(path.exists(), "run `cargo build -p dunlin --examples`");
    Command::new(path)
}

#[test]
fn the_hello_server_greets_the_hello_client() {
    let mut server = Running(
        example("hello_server")
            .arg("127.0.0.1:0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts"),
    );
    let output = server.0.stdout.take().expect("it was piped");
    let mut line = String::new();
    let read = BufReader::new(output).read_line(&mut line);
    read.expect("the server says where it listens");
    let address = line.trim().rsplit(' ').next().unwrap_or_default();
    for number in 1..=2 {
        let client = example("hello_client").arg(address).output();
        let client = client.expect("the client starts");
        assert!(client.status.success(), "{client:?}");
        let said = String::from_utf8_lossy(&client.stdout);
        assert_eq!(said, format!("hello world, you are number {number}\n"));
    }
}
