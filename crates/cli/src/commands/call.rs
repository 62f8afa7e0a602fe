//! `dunlin call`: calls a method of a server by JSON. The server turns the argument into a message,
//! and the response into JSON; the call itself is like any other client's.

use std::io;
use std::time::Duration;

use anyhow::Context;
use dunlin::Settings;
use dunlin::service::Meta;
use dunlin::service::reflect::Returned;
use dunlin::settings::Configurable;

use crate::commands::echo::{TransportArgs, over, span};
use crate::commands::reflect::{open, refuse};
use crate::misuse::{Exit, Misuse};
use crate::say::print;

const EXAMPLES: &str = "\
Examples:
  dunlin call 127.0.0.1:31850 Kv.get '{\"key\":7}'
  dunlin call HOST:31850 Kv.get 7 --deadline 50ms --meta tenant=blue --meta team=a
  dunlin call HOST:31850 Kv.size           a method whose argument is ()
  dunlin call HOST:31850 Kv.put - < pair.json
  dunlin call HOST:31850 Kv.get 7 | jq .

The argument is the JSON of the method's message; `dunlin list` shows its type. The result is one
line of JSON on the standard output: the value, or the method's own error with exit code 1. A method
without an answer prints nothing. A failed call is not repeated.

Exit codes: 0, the method returned a value, or has no answer and ran; 1, it returned its own error;
2, wrong usage, or JSON that does not fit the argument; 3, the server cannot be reached in time;
4, it has no such method; 5, it does not take calls by JSON; 6, the call failed, for example at its
deadline.";

/// The exit code of a method that returned its own error.
const OWN_ERROR: u8 = 1;

/// The arguments of `dunlin call`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address of the server; the usual port is 31850
    #[arg(value_name = "HOST[:PORT]")]
    address: String,
    /// The service and the method
    #[arg(value_name = "SERVICE.METHOD")]
    method: String,
    /// The argument; `-` reads it from the standard input
    #[arg(
        value_name = "JSON",
        default_value = "null",
        allow_negative_numbers = true
    )]
    argument: String,
    /// Ends the call if no response has arrived after this time; by default, waits forever
    #[arg(long, value_name = "TIME", value_parser = span)]
    deadline: Option<Duration>,
    /// Metadata to send with the call; can be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    meta: Vec<String>,
    /// Longest time to wait for the server; the time of the call is not counted
    #[arg(short, long, value_name = "TIME", default_value = "5", value_parser = span)]
    timeout: Duration,
    #[command(flatten)]
    options: TransportArgs,
}

/// Calls the method, and prints its result.
///
/// # Errors
/// [`Exit`] with the exit code, unless the method returned a value; [`Misuse`] if the usage is
/// wrong, or the JSON is not an argument of the method.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.options.settings()?;
    let meta = meta(&args.meta)?;
    let argument = match &*args.argument {
        "-" => io::read_to_string(io::stdin()).context("the argument cannot be read")?,
        json => json.to_owned(),
    };
    over!(
        args.options.transport,
        call(args, &settings, &argument, &meta)
    )
}

fn call<T: Configurable>(
    args: &Args,
    settings: &Settings,
    argument: &str,
    meta: &Meta,
) -> anyhow::Result<()> {
    let mut server = open::<T>(settings, &args.address, args.timeout)?;
    let called = server.call(&args.method, argument, args.deadline, meta);
    match called.map_err(refuse)? {
        None => Ok(()),
        Some(Returned::Value(json)) => print(&format!("{json}\n")),
        Some(Returned::Error(json)) => {
            print(&format!("{json}\n"))?;
            eprintln!("dunlin: {} returned its own error", args.method);
            Err(Exit(OWN_ERROR).into())
        }
    }
}

fn meta(pairs: &[String]) -> Result<Meta, Misuse> {
    let mut meta = Meta::new();
    for pair in pairs {
        let misuse = |what: &str| Misuse(format!("--meta {pair}: {what}"));
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| misuse("write KEY=VALUE"))?;
        meta.add(key, value)
            .map_err(|error| misuse(&error.to_string()))?;
    }
    Ok(meta)
}
