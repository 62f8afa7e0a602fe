//! `dunlin health`: asks a server whether it serves, for the probes of an orchestrator. The exit
//! code is the answer.

use std::net::SocketAddr;
use std::time::Duration;

use dunlin::settings::Configurable;
use dunlin::{HealthError, HealthState, Settings, ask_health};
use serde_json::json;

use crate::commands::echo::{TransportArgs, over, span};
use crate::commands::target::{asker, is_no_address, resolve};
use crate::misuse::{Exit, Misuse};
use crate::say::print;

const EXAMPLES: &str = "\
Examples:
  dunlin health 127.0.0.1:31850            whether the server at this address serves
  dunlin health 127.0.0.1:31850 Kv         whether it has the service `Kv`, and serves
  dunlin health --timeout 200ms HOST:31850
  dunlin health --transport xdp:eth0 HOST:31850
  dunlin health --json HOST:31850 | jq -r .status

A server does not serve while it drains, or while one of its threads has made no turn for longer
than its option `server.health_stuck`. A `Server` answers such questions on a thread of its own,
unless its option `server.health` is off; other programs do not answer them.

Exit codes: 0, it serves; 1, it does not serve; 2, wrong usage; 3, it cannot be reached in time, or
does not report its health; 4, it has no such service.";

/// The exit code of a server that does not serve.
const NOT_SERVING: u8 = 1;
/// The exit code of a server that does not answer in time, or that has no health endpoint.
const UNREACHABLE: u8 = 3;
/// The exit code of a server without the service.
const NO_SUCH_SERVICE: u8 = 4;

/// The arguments of `dunlin health`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address of the server; the usual port is 31850
    #[arg(value_name = "HOST[:PORT]")]
    address: String,
    /// The name of a service, which is its trait's name; by default, asks about the whole server
    #[arg(value_name = "SERVICE", default_value = "", hide_default_value = true)]
    service: String,
    /// Longest time to wait for the answer
    #[arg(short, long, value_name = "TIME", default_value = "1", value_parser = span)]
    timeout: Duration,
    #[command(flatten)]
    options: TransportArgs,
    /// One JSON object, on the standard output
    #[arg(long)]
    json: bool,
}

/// The answer, in the words of the command.
struct Answer {
    code: u8,
    status: &'static str,
    reason: String,
}

/// Asks the server, and prints its answer.
///
/// # Errors
/// [`Exit`] with the exit code, unless the server serves; [`Misuse`] if the usage is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.options.settings()?;
    let to = match resolve(&args.address) {
        Ok(to) => to,
        Err(error) if is_no_address(&error) => return Err(Misuse(format!("{error:#}")).into()),
        Err(error) => return args.say(&unreachable(format!("{error:#}"))),
    };
    over!(args.options.transport, ask(args, &settings, to))
}

fn ask<T: Configurable>(args: &Args, settings: &Settings, to: SocketAddr) -> anyhow::Result<()> {
    let from = match asker::<T>(settings, to) {
        Ok(from) => from,
        Err(error) => return args.say(&unreachable(format!("cannot ask from here: {error:#}"))),
    };
    let asked = ask_health(from, to, &args.service, args.timeout);
    let answer = match asked {
        Ok(HealthState::Serving) => Answer {
            code: 0,
            status: "serving",
            reason: String::new(),
        },
        Ok(HealthState::NotServing(reason)) => Answer {
            code: NOT_SERVING,
            status: "not serving",
            reason,
        },
        Err(error @ HealthError::NoSuchService(_)) => Answer {
            code: NO_SUCH_SERVICE,
            status: "no such service",
            reason: error.to_string(),
        },
        Err(error @ HealthError::LongName) => return Err(Misuse(error.to_string()).into()),
        Err(error) => unreachable(error.to_string()),
    };
    args.say(&answer)
}

impl Args {
    fn say(&self, answer: &Answer) -> anyhow::Result<()> {
        let Answer {
            code,
            status,
            reason,
        } = answer;
        let line = if self.json {
            let (address, service) = (&self.address, &self.service);
            json!({"address": address, "service": service, "status": status, "reason": reason})
                .to_string()
        } else if reason.is_empty() {
            (*status).to_owned()
        } else {
            format!("{status}: {reason}")
        };
        print(&format!("{line}\n"))?;
        match code {
            0 => Ok(()),
            code => Err(Exit(*code).into()),
        }
    }
}

const fn unreachable(reason: String) -> Answer {
    Answer {
        code: UNREACHABLE,
        status: "unreachable",
        reason,
    }
}
