//! The binary: exit codes, messages, and files that are written as a whole or not at all.

#[path = "../../gopt-c/tests/programs/mod.rs"]
mod programs;

use std::path::Path;
use std::process::{Command, Stdio};

use programs::Folder;

const INPUT: &str = "\
int sum_of(const int *t, const int *at, int *out, int n)
{
    int sum = 0;
    foreach (i, n) {
        int where = at[i];
        g_expensive(&t[where]);
        out[i] = t[where];
        sum += t[where];
    }
    return sum;
}
";

const DRIVER: &str = "\
#include <stdio.h>
int sum_of(const int *t, const int *at, int *out, int n);
int main(void)
{
    int t[8] = {5, 3, 7, 1, 0, 2, 6, 4}, out[8];
    printf(\"%d\\n\", sum_of(t, t, out, 8));
    for (int i = 0; i < 8; i++)
        printf(\"%d \", out[i]);
    return 9;
}
";

struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn gopt(folder: &Path, args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gopt"));
    let output = command
        .args(args)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output();
    let output = output.expect("the binary can be started");
    Ended {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn files(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("it is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        entry
            .expect("it can be read")
            .file_name()
            .to_string_lossy()
            .into_owned()
    };
    let mut names: Vec<_> = entries.map(name).collect();
    names.sort();
    names
}

#[test]
fn an_input_becomes_an_output() {
    let folder = Folder::new("cli-good");
    let path = folder.path("");
    std::fs::write(folder.path("in.c"), INPUT).expect("it is written");
    std::fs::write(folder.path("driver.c"), DRIVER).expect("it is written");
    std::fs::write(folder.path("out.c"), "old").expect("it is written");
    let ended = gopt(
        &path,
        &["in.c", "-o", "out.c", "--batch", "4", "--check", "driver.c"],
    );
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("did the same with gcc"),
        "{}",
        ended.stderr
    );
    let written = std::fs::read_to_string(folder.path("out.c")).expect("it is there");
    assert!(written.contains("__builtin_prefetch(&t[gopt_of_where[gopt_lane]])"));
    assert_eq!(files(&path), ["driver.c", "in.c", "out.c"]);
    let printed = gopt(&path, &["in.c", "--batch", "4"]);
    assert_eq!(printed.stdout, written);
    let header = gopt(&path, &["--header"]);
    assert_eq!(
        (header.code, header.stdout.as_str()),
        (Some(0), gopt_c::HEADER)
    );
    assert_eq!(gopt(&path, &["in.c", "-o", "/dev/null"]).code, Some(0));
    for flag in ["--help", "--version"] {
        assert_eq!(gopt(&path, &[flag]).code, Some(0));
    }
    assert!(gopt(&path, &["--help"]).stdout.contains("Examples:"));
}

#[test]
fn a_failed_command_says_why_and_writes_nothing() {
    let folder = Folder::new("cli-bad");
    let path = folder.path("");
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path(name), bytes);
    write("in.c", INPUT.as_bytes()).expect("it is written");
    write("empty.c", b"").expect("it is written");
    write("utf16.c", b"\xff\xfei\0n\0t\0").expect("it is written");
    write("latin.c", b"int x; // line 1\n// \xfcber\n").expect("it is written");
    write("zero.c", b"int x;\0").expect("it is written");
    write("huge.c", &vec![b' '; gopt_c::MAX_BYTES + 1]).expect("it is written");
    write("plain.c", b"int x;\n").expect("it is written");
    write("broken.c", b"int f( {\n").expect("it is written");
    write("name.c", b"int gopt_lane;\n").expect("it is written");
    let before = files(&path);
    for (args, reason) in [
        (&["empty.c"][..], "the file is empty"),
        (&["utf16.c"], "utf16.c:1: byte 0 is not UTF-8"),
        (&["latin.c"], "latin.c:2: byte 20 is not UTF-8"),
        (&["zero.c"], "a byte of value 0"),
        (&["huge.c"], "more than 8388608 are refused"),
        (&["plain.c"], "no `foreach`"),
        (&["broken.c"], "broken.c:1:1: error: this is not C"),
        (
            &["name.c"],
            "name.c:1:5: error: names that begin with `gopt_`",
        ),
        (&["nowhere.c"], "cannot read nowhere.c"),
        (&["."], "is a folder"),
        (&["in.c", "--check", "nowhere.c"], "cannot read the driver"),
    ] {
        let ended = gopt(&path, &[args, &["-o", "out.c"]].concat());
        assert_eq!(ended.code, Some(1), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{args:?}: {}", ended.stderr);
        assert_eq!(ended.stdout, "", "{args:?}");
        assert_eq!(files(&path), before, "{args:?}");
    }
    for (batch, reason) in [
        ("0", "not a number between 1 and 1024"),
        ("99999", "invalid value '99999' for '--batch <N>'"),
        ("-1", "unexpected argument"),
        ("many", "invalid value 'many'"),
    ] {
        let ended = gopt(&path, &["in.c", "--batch", batch, "-o", "out.c"]);
        assert_eq!(ended.code, Some(2), "{batch}: {}", ended.stderr);
        assert!(ended.stderr.contains(reason), "{batch}: {}", ended.stderr);
        assert_eq!(files(&path), before, "{batch}");
    }
    for output in ["in.c", "nowhere/out.c"] {
        assert_eq!(
            gopt(&path, &["in.c", "-o", output]).code,
            Some(1),
            "{output}"
        );
    }
    let kept = std::fs::read_to_string(folder.path("in.c")).expect("it is there");
    assert_eq!(kept, INPUT);
}

#[test]
fn places_that_lanes_share_are_warned_of_and_refused_when_strict() {
    let folder = Folder::new("cli-strict");
    let path = folder.path("");
    let shared = "\
int last;
void f(int *t, int *k, int *o, int n)
{
    foreach (i, n) {
        last = k[i];
        g_expensive(&t[k[i]]);
        o[i] = t[k[i]] + last;
    }
}
";
    std::fs::write(folder.path("in.c"), shared).expect("it is written");
    let warned = gopt(&path, &["in.c", "-o", "out.c"]);
    assert_eq!(warned.code, Some(0), "{}", warned.stderr);
    let reason = "in.c:5:9: warning: all lanes share `last`: another item may change it";
    assert!(warned.stderr.contains(reason), "{}", warned.stderr);
    std::fs::remove_file(folder.path("out.c")).expect("it was written");
    let refused = gopt(&path, &["in.c", "-o", "out.c", "--strict"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains(reason), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("because of --strict"),
        "{}",
        refused.stderr
    );
    assert_eq!(files(&path), ["in.c"]);
    std::fs::write(folder.path("in.c"), INPUT).expect("it is written");
    let clean = gopt(&path, &["in.c", "-o", "out.c", "--strict"]);
    assert_eq!(clean.code, Some(0), "{}", clean.stderr);
}

const MACROS: &str = "\
#include <stdio.h>
#include <stdlib.h>
#include <stddef.h>
#include \"gopt.h\"
#define PACKED __attribute__((packed))
#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))
struct pair { int key, value; };
int sum_of(const int *t, const int *at, int *out, int n)
{
    struct pair { char tag; int value; } PACKED;
    int sum = 0;
    foreach (i, n) {
        struct entry { int key PACKED; int value; } entry = { 1, at[i] };
        int *value = &entry.value;
        g_expensive(&t[entry.value]);
        out[i] = t[container_of(value, struct entry, value)->value] - (NULL != 0);
        sum += out[i];
    }
    return sum;
}
";

#[test]
fn the_preprocessor_runs_first_and_messages_name_the_original_lines() {
    let folder = Folder::new("cli-preprocess");
    let path = folder.path("");
    std::fs::write(folder.path("in.c"), MACROS).expect("it is written");
    std::fs::write(folder.path("driver.c"), DRIVER).expect("it is written");
    let alone = gopt(&path, &["in.c", "-o", "out.c"]);
    assert_eq!(alone.code, Some(1), "{}", alone.stderr);
    assert!(
        alone
            .stderr
            .contains("in.c:13:32: error: the macro `PACKED`")
    );
    let args = ["in.c", "-o", "out.c", "--preprocess", "--check", "driver.c"];
    let ended = gopt(&path, &args);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    // Messages of compilers also have the line numbers of the original.
    let wrong = MACROS.replace("sum += out[i];", "sum += out[unknown];");
    std::fs::write(folder.path("in.c"), wrong).expect("it is written");
    let ended = gopt(&path, &["in.c", "-o", "out.c", "--preprocess"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let compiled = Command::new("gcc")
        .args(["-fsyntax-only", "out.c"])
        .current_dir(&path)
        .output()
        .expect("gcc starts");
    let said = String::from_utf8_lossy(&compiled.stderr);
    assert!(
        said.contains("in.c:17:") && said.contains("unknown"),
        "{said}"
    );
    let refused = MACROS.replace("sum += out[i];", "goto away;");
    std::fs::write(folder.path("in.c"), refused).expect("it is written");
    let ended = gopt(&path, &["in.c", "--preprocess"]);
    assert!(
        ended.stderr.contains("in.c:17:9: error: this label"),
        "{}",
        ended.stderr
    );
}

/// The items depend on each other. The tool cannot know that, but `--check` sees it.
#[test]
fn a_result_that_differs_is_not_written() {
    let folder = Folder::new("cli-differs");
    let text = INPUT.replace(
        "sum += t[where]",
        "sum = sum * 3 + t[where] + (t[sum & 7] & i)",
    );
    let text = text.replace(
        "int where = at[i];",
        "int where = at[i];\n        if (i & 1) g_expensive(out);",
    );
    std::fs::write(folder.path("in.c"), text).expect("it is written");
    std::fs::write(folder.path("driver.c"), DRIVER).expect("it is written");
    let ended = gopt(
        &folder.path(""),
        &["in.c", "-o", "out.c", "--check", "driver.c"],
    );
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(
        ended.stderr.contains("all lanes share `sum`"),
        "{}",
        ended.stderr
    );
    assert!(
        ended.stderr.contains("the output differs in line 1"),
        "{}",
        ended.stderr
    );
    assert_eq!(files(&folder.path("")), ["driver.c", "in.c"]);
}

#[test]
fn the_code_of_the_pages_becomes_code_that_compiles() {
    code_of_a_page(include_str!("../../../docs/gopt-c.md"));
    code_of_a_page(include_str!("../../../README.md"));
}

fn code_of_a_page(page: &str) {
    let mut blocks = page.split("```c\n").skip(1);
    let block = blocks.next().and_then(|block| block.split("```").next());
    let folder = Folder::new("cli-book");
    let path = folder.path("");
    std::fs::write(folder.path("find.c"), block.expect("there is a block")).expect("it is written");
    std::fs::write(folder.path("gopt.h"), gopt_c::HEADER).expect("it is written");
    let ended = gopt(&path, &["find.c", "-o", "find_fast.c"]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    for file in ["find.c", "find_fast.c"] {
        let compiled = Command::new("gcc")
            .args(["-Wall", "-Werror", "-fsyntax-only", file])
            .current_dir(&path)
            .output()
            .expect("gcc starts");
        let said = String::from_utf8_lossy(&compiled.stderr);
        assert!(compiled.status.success(), "{file}: {said}");
    }
    assert!(blocks.next().is_none(), "the other blocks are not checked");
}
