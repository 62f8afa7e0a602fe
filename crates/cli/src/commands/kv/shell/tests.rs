//! Lines that become words, and words that become commands.

use super::*;

/// Commands like the ones of `dunlin kv`.
#[derive(Debug, Subcommand)]
enum Command {
    Get {
        key: String,
        #[arg(long)]
        server: Option<String>,
    },
    Incr {
        key: String,
        by: u64,
    },
}

fn split(line: &str) -> Vec<String> {
    words(line).unwrap()
}

#[test]
fn words_are_split_as_in_a_shell() {
    assert_eq!(split("set name  dunlin\n"), ["set", "name", "dunlin"]);
    assert_eq!(
        split(r#"set "a b" 'c "d"' e\ f"#),
        ["set", "a b", "c \"d\"", "e f"]
    );
    assert_eq!(split(r#"set k """#), ["set", "k", ""]);
    assert_eq!(split(r#"x"y"z '\n'"#), ["xyz", r"\n"]);
    assert!(split(" \n").is_empty());
    for wrong in ["get \"a", "get 'a\n", "get a\\", "get a\\\n"] {
        assert!(words(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn a_line_is_one_command_of_the_shells_server() {
    let mut seen = Vec::new();
    let mut run = |line: &str| {
        run_line(line, &mut |command: &Command| {
            seen.push(format!("{command:?}"));
            Ok(())
        })
    };
    run("incr visits 5\n").unwrap();
    run("\n").unwrap();
    let error = run("get a --server 10.0.0.2:31850").unwrap_err();
    assert!(error.to_string().contains("--server belongs to"), "{error}");
    assert!(run("fetch a").is_err());
    assert_eq!(seen.len(), 1);
    assert!(seen[0].contains("visits"), "{seen:?}");
}
