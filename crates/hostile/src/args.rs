//! The command line.

use std::time::Duration;

use harness::process::{self, RoleArgs};

use crate::attack::Attack;
use crate::words::Rates;

const EXAMPLES: &str = "\
Examples:
  cargo xtask hostile                              two minutes of all attacks
  cargo xtask hostile --minutes 40 --reach         10⁸ packets and 10⁶ connections
  cargo xtask hostile --seed 7 --only blaster      one kind of attacker, with this seed
  cargo xtask hostile --json | jq .faults

A server and its healthy client run from the beginning to the end. Three phases take turns. In the
first, the attackers work at a steady pace on another server of the same kind. In the second, they
attack the client's server in the same way, so both phases take as much processor time, and the
client's latencies in the two phases are compared. In the third, a storm, packets fill the server's
socket, so no latency is judged.

Exit codes: 0, nothing was found; 1, something was found, or a process of the run failed; 2, wrong
arguments; 130, Ctrl-C, after a report of the run so far.";

/// Attacks a server with a healthy client, and judges the client's observations.
#[derive(clap::Parser)]
#[command(name = "cargo xtask hostile", version, after_help = EXAMPLES)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    /// Length of the run.
    #[arg(long, value_name = "M", default_value_t = 2.0, value_parser = minutes)]
    pub(crate) minutes: f64,
    /// Seeds all random numbers of the attackers.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Starts only these attackers.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ATTACK")]
    pub(crate) only: Vec<Attack>,
    /// Packets that the blaster sends in a second of a storm.
    #[arg(long, value_name = "N", default_value_t = 200_000)]
    pub(crate) packet_rate: u32,
    /// Connections that the flood makes in a second of a storm.
    #[arg(long, value_name = "N", default_value_t = 2_000)]
    pub(crate) connection_rate: u32,
    /// Ends the run once the server has read 10⁸ packets and answered 10⁶ connections. A run that
    /// does not reach this in its time fails.
    #[arg(long)]
    pub(crate) reach: bool,
    /// Prints one JSON object with all observations.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    /// One process of a run.
    #[command(name = process::SUBCOMMAND, hide = true)]
    Role(RoleArgs),
}

impl Args {
    /// How long the run takes.
    pub(crate) fn span(&self) -> Duration {
        Duration::from_secs_f64(60.0 * self.minutes)
    }

    /// The attackers of this run.
    pub(crate) fn attacks(&self) -> Vec<Attack> {
        match self.only.is_empty() {
            true => Attack::ALL.to_vec(),
            false => self.only.clone(),
        }
    }

    /// The pace of the attackers in a storm.
    pub(crate) fn storm(&self) -> Rates {
        Rates {
            packets: self.packet_rate,
            connections: self.connection_rate,
        }
    }

    /// The command that repeats the run.
    pub(crate) fn replay(&self) -> String {
        let mut text = format!(
            "cargo xtask hostile --minutes {} --seed {} --packet-rate {} --connection-rate {}",
            self.minutes, self.seed, self.packet_rate, self.connection_rate
        );
        if self.reach {
            text += " --reach";
        }
        if !self.only.is_empty() {
            let names: Vec<_> = self.only.iter().map(|attack| attack.name()).collect();
            text += &format!(" --only {}", names.join(","));
        }
        text
    }
}

/// Reads a number of minutes, from a half (enough for each phase once) to a day.
fn minutes(text: &str) -> Result<f64, String> {
    let minutes: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    match (0.5..=1440.0).contains(&minutes) {
        true => Ok(minutes),
        false => Err("from 0.5 to 1440".to_owned()),
    }
}

#[cfg(test)]
mod tests;
