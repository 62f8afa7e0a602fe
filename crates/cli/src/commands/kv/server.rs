//! The servers that a command uses, and how it reaches them.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use anyhow::anyhow;
use clap::ValueEnum;
use dunlin::Settings;
use dunlin::kv::{Connections, Error, FleetOptions, Options, ServerError, WhenDown};
use dunlin::settings::Configurable;

use crate::commands::echo::{EndpointArgs, span};
use crate::commands::target::{bind_ip, resolve, with_port};
use crate::misuse::Misuse;
use crate::say::with_causes;

/// The prefix of a name that stands for several servers, one at each of its addresses.
const EACH: &str = "dns+";

/// The servers, and how to reach them.
#[derive(Debug, clap::Args)]
pub(super) struct ServerArgs {
    /// Address of the server; if several are given, keys are spread over them, and all clients must
    /// give the same names; each address of `dns+HOST:PORT` is a server
    #[arg(
        long,
        value_name = "HOST:PORT",
        default_value = "127.0.0.1:31850",
        value_delimiter = ','
    )]
    server: Vec<String>,
    /// The result of operations on keys whose server is down; by default, `wait` with one server,
    /// and `fail` with several or with `dns+`
    #[arg(long, value_name = "HOW", value_enum)]
    when_down: Option<DownArg>,
    /// How long to wait for the server and its answer
    #[arg(long, value_name = "TIME", default_value = "5", value_parser = span)]
    timeout: Duration,
    #[command(flatten)]
    pub(super) endpoint: EndpointArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum DownArg {
    /// They fail at once
    Fail,
    /// A get finds nothing, if the server is a cache; other operations fail at once
    Miss,
    /// They wait for the server
    Wait,
}

impl ServerArgs {
    /// Makes the connections.
    ///
    /// # Errors
    /// No server has an address, or this process cannot listen.
    pub(super) fn connect<T: Configurable>(
        &self,
        settings: &Settings,
    ) -> anyhow::Result<Connections<T>> {
        // A client listens at a port that the system chooses.
        let nexus = settings.nexus().bind(SocketAddr::new(self.own_ip()?, 0))?;
        let options = FleetOptions {
            client: Options {
                deadline: self.timeout.into(),
                ..Options::DEFAULT
            },
            when_down: self.when_down(),
            lookup: None,
        };
        let names: Vec<String> = self.server.iter().map(|name| whole_name(name)).collect();
        let endpoint = settings.endpoint::<T>(&nexus);
        let connect = settings.connect_options();
        let names = names.iter().map(String::as_str);
        Ok(Connections::open_with(endpoint, names, options, connect)?)
    }

    /// Refuses `--when-down miss` for a command that needs all items.
    ///
    /// # Errors
    /// It is given.
    pub(super) fn forbid_misses(&self) -> Result<(), Misuse> {
        match self.when_down() {
            WhenDown::Miss => Err(Misuse(
                "--when-down miss: a dump would leave out the items of a server that is down; \
                 take `fail` or `wait`"
                    .to_owned(),
            )),
            WhenDown::Fail | WhenDown::Wait => Ok(()),
        }
    }

    /// The result of operations whose server is down.
    fn when_down(&self) -> WhenDown {
        match self.when_down {
            Some(DownArg::Fail) => WhenDown::Fail,
            Some(DownArg::Miss) => WhenDown::Miss,
            Some(DownArg::Wait) => WhenDown::Wait,
            None if self.is_one() => WhenDown::Wait,
            None => WhenDown::Fail,
        }
    }

    /// Whether there is one server, whatever a name service answers.
    fn is_one(&self) -> bool {
        matches!(&self.server[..], [only] if !only.starts_with(EACH))
    }

    /// The address to bind so that all servers that are found can answer.
    fn own_ip(&self) -> anyhow::Result<IpAddr> {
        let bare = |name: &String| resolve(name.strip_prefix(EACH).unwrap_or(name));
        let found: Vec<_> = self.server.iter().map(bare).collect();
        let ips = || found.iter().flatten().map(SocketAddr::ip);
        let far = ips().find(|ip| !ip.is_loopback());
        match far.or(ips().next()) {
            Some(ip) => Ok(bind_ip(ip)),
            None => match found.into_iter().next() {
                Some(Err(error)) => Err(error),
                _ => Err(anyhow!("--server: there is no server")),
            },
        }
    }

    /// Adds advice to an error, if the user can do something about it.
    pub(super) fn advise(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(failed) = error.downcast_ref::<ServerError>() else {
            return error;
        };
        let at = failed.server().unwrap_or(&self.server[0]);
        let advice = match failed.error() {
            Error::Unavailable => format!(
                "no server answers at {at} over {}; start one with `dunlin kv serve --listen \
                 {at}`, or wait longer with --timeout",
                self.endpoint.transport.name()
            ),
            Error::DeadlinePassed => "wait longer with --timeout".to_owned(),
            Error::VersionDiffers => {
                "another client has written it; `dunlin kv get KEY --json` shows its version"
                    .to_owned()
            }
            Error::NoMemory => {
                "delete items, or restart it with more --memory or with --mode cache".to_owned()
            }
            Error::TooLong => {
                "a value has at most 1 MiB, and in a cache a quarter of the partition".to_owned()
            }
            Error::Incompatible => format!("see which program listens at {at}"),
            _ => return error,
        };
        anyhow!("{}; {advice}", with_causes(&error))
    }
}

/// An entry of the list with its port.
fn whole_name(name: &str) -> String {
    match name.strip_prefix(EACH) {
        Some(rest) => format!("{EACH}{}", with_port(rest)),
        None => with_port(name),
    }
}

#[cfg(test)]
mod tests;
