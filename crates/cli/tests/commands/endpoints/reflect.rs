//! `dunlin list` and `dunlin call` against servers with and without reflection: their output and
//! their exit codes.

use std::io::Write;
use std::process::{Output, Stdio};

use dunlin::service::{Context, Fixed, Postcard};
use dunlin::{Running as Server, Server as Builder, service};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{dunlin, objects, run, text};

#[derive(Serialize, Deserialize)]
struct Pair {
    left: u64,
    right: Option<u64>,
}

#[derive(Serialize, Deserialize)]
enum Overflow {
    Above { limit: u64 },
    Odd,
}

#[service(codec = Postcard, reflect)]
trait Sum {
    #[method(1, idempotent)]
    fn add(pair: Pair) -> Result<u64, Overflow>;
    #[method(2, codec = Fixed)]
    fn negate(number: i8) -> [i8; 2];
    #[notify(3)]
    fn reset(nothing: ());
    #[method(4)]
    fn tenant(nothing: ()) -> Option<String>;
    #[method(5)]
    fn hang(nothing: ());
}

#[service(codec = Fixed, base = 100)]
trait Hidden {
    #[method(1)]
    fn nothing(nothing: ());
}

struct Sums;

impl Sum for Sums {
    async fn add(&self, pair: Pair, _: Context<'_>) -> Result<u64, Overflow> {
        let right = pair.right.ok_or(Overflow::Odd)?;
        let above = Overflow::Above { limit: u64::MAX };
        pair.left.checked_add(right).ok_or(above)
    }

    async fn negate(&self, number: &i8, _: Context<'_>) -> [i8; 2] {
        [*number, -number]
    }

    async fn reset(&self, (): (), _: Context<'_>) {}

    async fn tenant(&self, (): (), context: Context<'_>) -> Option<String> {
        context.metadata().get("tenant").map(str::to_owned)
    }

    async fn hang(&self, (): (), _: Context<'_>) {
        std::future::pending().await
    }
}

impl Hidden for () {
    async fn nothing(&self, &(): &(), _: Context<'_>) {}
}

/// A server with or without reflection, and its address.
fn server(reflect: bool) -> (Server, String) {
    let server = Builder::builder().service(|_| SumServer(Sums));
    let server = server.service(|_| HiddenServer(())).reflect(reflect);
    let server = server.start("127.0.0.1:0").unwrap();
    let address = server.address().to_string();
    (server, address)
}

/// The exit code of a command, its output, and its error messages.
fn ended(out: &Output) -> (Option<i32>, &str, &str) {
    (out.status.code(), text(&out.stdout), text(&out.stderr))
}

#[test]
fn list_shows_services_methods_and_types() {
    let (_server, address) = server(true);
    let out = run(&["list", &address]);
    let expected = "\
Hidden
  its trait lacks the option `reflect`, so only its name is known

Sum
  Sum.add(Pair) -> Result<u64, Overflow>  1 Postcard  idempotent
  Sum.negate(i8) -> [i8; 2]               2 Fixed
  Sum.reset(())                           3 Postcard  no answer
  Sum.tenant(()) -> Option<string>        4 Postcard
  Sum.hang(()) -> ()                      5 Postcard
  type Pair { left: u64, right: Option<u64> }
  type Overflow = Above { limit: u64 } | Odd
";
    assert_eq!(ended(&out), (Some(0), expected, ""));
    let out = run(&["list", "--json", &address]);
    let [described] = &objects(&out.stdout)[..] else {
        panic!("{out:?}");
    };
    assert_eq!(described["services"][0], json!({"name": "Hidden"}));
    let expected = json!({"name": "Sum.reset", "number": 3, "codec": "Postcard",
        "idempotent": false, "one_way": true, "request": "()", "response": null, "error": null});
    assert_eq!(described["services"][1]["methods"][2], expected);
}

#[test]
fn call_prints_the_result_and_each_kind_of_end_has_an_exit_code() {
    let (_server, address) = server(true);
    let none = ("", "");
    let own = "dunlin: Sum.add returned its own error\n";
    for (args, code, (printed, said)) in [
        (&["Sum.add", r#"{"left":1,"right":2}"#][..], 0, ("3\n", "")),
        (&["Sum.add", r#"{"left":1}"#], 1, ("\"Odd\"\n", own)),
        (
            &["Sum.add", r#"{"left":18446744073709551615,"right":1}"#],
            1,
            ("{\"Above\":{\"limit\":18446744073709551615}}\n", own),
        ),
        (&["Sum.negate", "-7"], 0, ("[-7,7]\n", "")),
        (&["Sum.reset"], 0, none),
        (&["Sum.tenant"], 0, ("null\n", "")),
        (
            &["Sum.tenant", "--meta", "tenant=a=b"],
            0,
            ("\"a=b\"\n", ""),
        ),
        (
            &["Sum.tenant", "--meta", "tenant"],
            2,
            ("", "dunlin: --meta tenant: write KEY=VALUE\n"),
        ),
        (
            &["Sum.tenant", "--meta", "Tenant=a"],
            2,
            ("", "dunlin: --meta Tenant=a: a key of metadata has"),
        ),
        (
            &["Sum.add", r#"{"left":"x"}"#],
            2,
            ("", "dunlin: field `left`: expected u64, found a string\n"),
        ),
        (&["Sum.add", "{"], 2, ("", "dunlin: no JSON: EOF")),
        (
            &["Sum.ad", "{}"],
            4,
            (
                "",
                "dunlin: there is no method `Sum.ad`; the methods are Sum.add, Sum.negate",
            ),
        ),
        (
            &["Hidden.nothing"],
            4,
            ("", "dunlin: `Hidden.nothing` cannot be called by JSON"),
        ),
        (
            &["Sum.hang", "--deadline", "50ms"],
            6,
            ("", "dunlin: the call failed: "),
        ),
    ] {
        let out = run(&[&["call", &address], args].concat());
        let (got, stdout, stderr) = ended(&out);
        assert_eq!((got, stdout), (Some(code), printed), "{args:?}: {stderr}");
        assert!(stderr.starts_with(said), "{args:?}: {stderr}");
        assert_eq!(stderr.is_empty(), said.is_empty(), "{args:?}: {stderr}");
    }
}

#[test]
fn call_reads_the_argument_from_the_standard_input() {
    let (_server, address) = server(true);
    let mut command = dunlin(&["call", &address, "Sum.add", "-"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin
        .write_all(b"{\"left\": 20,\n \"right\": 3}\n")
        .unwrap();
    drop(stdin);
    assert_eq!(
        ended(&child.wait_with_output().unwrap()),
        (Some(0), "23\n", "")
    );
}

#[test]
fn servers_without_reflection_and_without_an_answer_have_exit_codes() {
    let (_server, off) = server(false);
    let (_echo, echo) = super::Running::server(&[]);
    let nothing = "127.0.0.1:1".to_owned();
    for (address, code, said) in [
        (off, 5, "has reflection off"),
        (echo, 5, "is no `Server`"),
        (nothing, 3, "no server can be reached"),
        ("127.0.0.1:99999".to_owned(), 2, "is not a HOST:PORT"),
    ] {
        for args in [&["list", "--timeout", "1"][..], &["call", "--timeout", "1"]] {
            let method = (args[0] == "call").then_some("Sum.reset");
            let args = args.iter().copied().chain([&*address]).chain(method);
            let out = run(&args.collect::<Vec<_>>());
            let (got, stdout, stderr) = ended(&out);
            assert_eq!((got, stdout), (Some(code), ""), "{stderr}");
            assert!(stderr.contains(said), "{stderr}");
        }
    }
}
