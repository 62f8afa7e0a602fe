//! The service of `dunlin echo-server`, which `dunlin ping` calls, and the options that both share
//! with `dunlin kv`.

use std::time::Duration;

use clap::ValueEnum;
use dunlin::{ReqType, Settings};

use crate::commands::options::OptionArgs;

/// The request type of the echo, far from the small numbers that programs use first, so that a ping
/// does not run a handler of another program by accident.
pub(crate) const ECHO: ReqType = ReqType(0x7ec0);

/// The transport of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum Over {
    /// Shared memory on one host, UDP otherwise; works with peers of either kind
    Auto,
    /// Shared memory between processes of this host
    Shm,
    /// Kernel UDP
    Udp,
}

impl Over {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Shm => "shm",
            Self::Udp => "udp",
        }
    }
}

/// The endpoint flags that `ping`, `echo-server` and `kv` share.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EndpointArgs {
    /// Transport of packets
    #[arg(long, value_enum, value_name = "T", default_value = "auto")]
    pub(crate) transport: Over,
    /// How long a thread looks for packets before it blocks, such as `50 us`; `spin`: for ever
    #[arg(long, value_name = "TIME|spin")]
    idle: Option<String>,
    #[command(flatten)]
    options: OptionArgs,
    /// One JSON object per line, on the standard output
    #[arg(long)]
    pub(crate) json: bool,
}

impl EndpointArgs {
    /// The options. The flags of this command override the other sources.
    ///
    /// # Errors
    /// An option is wrong.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = self.options.load()?;
        if let Some(idle) = &self.idle {
            settings = settings.with_from("--idle", "endpoint.idle", idle)?;
        }
        settings.check()?;
        Ok(settings)
    }
}

/// A time in a flag: a number of seconds, or a number with a unit.
///
/// # Errors
/// It is not a time, or is longer than a day.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let start = text.find(|c: char| c.is_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(start);
    let unit = match unit {
        "" | "s" => 1.0,
        "ms" => 1e-3,
        "us" | "µs" => 1e-6,
        "min" => 60.0,
        _ => return Err(format!("`{unit}` is not a unit; use us, ms, s or min")),
    };
    let number: f64 = number.trim().parse().map_err(|_| "not a time".to_owned())?;
    let seconds = number * unit;
    if !(0.0..=86_400.0).contains(&seconds) {
        return Err("not from 0 to 86400 s".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}

/// A time in microseconds, with only the significant digits.
pub(crate) fn micros(span: Duration) -> String {
    let micros = span.as_secs_f64() * 1e6;
    match micros {
        ..10.0 => format!("{micros:.2}"),
        ..100.0 => format!("{micros:.1}"),
        _ => format!("{micros:.0}"),
    }
}

#[cfg(test)]
mod tests;
