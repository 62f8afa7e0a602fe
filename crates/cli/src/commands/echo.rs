//! The service of `dunlin echo-server`, which `dunlin ping` calls, and the options that both share
//! with `dunlin kv`.

use std::str::FromStr;
use std::time::Duration;

use dunlin::transport::DpdkSite;
use dunlin::{ReqType, Settings};

use crate::commands::options::OptionArgs;

/// The request type of the echo, far from the small numbers that programs use first, so that a ping
/// does not run a handler of another program by accident.
pub(crate) const ECHO: ReqType = ReqType(0x7ec0);

/// The transport of packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Over {
    /// Shared memory on one host, UDP otherwise.
    Auto,
    Shm,
    Udp,
    /// AF_XDP, past the kernel's network stack.
    Xdp(XdpQueue),
    /// Shared memory on one host, AF_XDP otherwise.
    AutoXdp(XdpQueue),
    /// DPDK, without the kernel: the device and its address. `None`: the value of the option
    /// `dpdk.device`.
    Dpdk(Option<String>),
    /// Shared memory on one host, DPDK otherwise.
    AutoDpdk(Option<String>),
}

/// An interface and a queue, as the flag names them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct XdpQueue {
    interface: String,
    /// `None`: the value of the option `xdp.queue`.
    queue: Option<String>,
}

impl Over {
    /// Adds the interface or the device that the flag names to the options.
    fn set(&self, mut settings: Settings) -> anyhow::Result<Settings> {
        match self {
            Self::Xdp(XdpQueue { interface, queue })
            | Self::AutoXdp(XdpQueue { interface, queue }) => {
                settings = settings.with_from("--transport", "xdp.interface", interface)?;
                if let Some(queue) = queue {
                    settings = settings.with_from("--transport", "xdp.queue", queue)?;
                }
            }
            Self::Dpdk(Some(device)) | Self::AutoDpdk(Some(device)) => {
                settings = settings.with_from("--transport", "dpdk.device", device)?;
            }
            _ => {}
        }
        Ok(settings)
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Shm => "shm",
            Self::Udp => "udp",
            Self::Xdp(_) => "xdp",
            Self::AutoXdp(_) => "auto+xdp",
            Self::Dpdk(_) => "dpdk",
            Self::AutoDpdk(_) => "auto+dpdk",
        }
    }

    /// The flag by which a client reaches a server over this transport; empty if it needs none.
    pub(crate) const fn flag_of_client(&self) -> &'static str {
        match self {
            Self::Shm => "--transport shm ",
            Self::Udp => "--transport udp ",
            // A client with the default transport reaches these. On another host than the server's,
            // interfaces and devices have other names.
            Self::Auto | Self::Xdp(_) | Self::AutoXdp(_) | Self::Dpdk(_) | Self::AutoDpdk(_) => "",
        }
    }
}

/// Calls a function over the transport, as its first type argument.
macro_rules! over {
    ($over:expr, $function:ident($($argument:expr),*)) => {
        match &$over {
            $crate::commands::echo::Over::Auto => $function::<dunlin::Auto>($($argument),*),
            $crate::commands::echo::Over::Shm => $function::<dunlin::Shm>($($argument),*),
            $crate::commands::echo::Over::Udp => $function::<dunlin::Udp>($($argument),*),
            $crate::commands::echo::Over::Xdp(_) => $function::<dunlin::Xdp>($($argument),*),
            $crate::commands::echo::Over::AutoXdp(_) => {
                $function::<dunlin::AutoXdp>($($argument),*)
            }
            $crate::commands::echo::Over::Dpdk(_) => $function::<dunlin::Dpdk>($($argument),*),
            $crate::commands::echo::Over::AutoDpdk(_) => {
                $function::<dunlin::AutoDpdk>($($argument),*)
            }
        }
    };
}

pub(crate) use over;

impl FromStr for Over {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => return Ok(Self::Auto),
            "shm" => return Ok(Self::Shm),
            "udp" => return Ok(Self::Udp),
            "dpdk" => return Ok(Self::Dpdk(None)),
            "auto+dpdk" => return Ok(Self::AutoDpdk(None)),
            _ => {}
        }
        if let Some(place) = text.strip_prefix("xdp:") {
            return place.parse().map(Self::Xdp);
        }
        if let Some(place) = text.strip_prefix("auto+xdp:") {
            return place.parse().map(Self::AutoXdp);
        }
        if let Some(device) = text.strip_prefix("dpdk:") {
            return checked(device).map(Self::Dpdk);
        }
        if let Some(device) = text.strip_prefix("auto+dpdk:") {
            return checked(device).map(Self::AutoDpdk);
        }
        Err(
            "use auto, shm, udp, xdp:INTERFACE[:QUEUE], such as xdp:eth0, \
             auto+xdp:INTERFACE[:QUEUE], dpdk[:DEVICE;ip=ADDRESS/BITS], or \
             auto+dpdk[:DEVICE;ip=ADDRESS/BITS]"
                .to_owned(),
        )
    }
}

/// A device of DPDK, if the text has the form of one.
fn checked(device: &str) -> Result<Option<String>, String> {
    device.parse::<DpdkSite>().map(|_| Some(device.to_owned()))
}

impl FromStr for XdpQueue {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (interface, queue) = match text.split_once(':') {
            None => (text, None),
            Some((interface, queue)) => (interface, Some(queue)),
        };
        if interface.is_empty() {
            return Err("the interface is missing: xdp:INTERFACE[:QUEUE]".to_owned());
        }
        Ok(Self {
            interface: interface.to_owned(),
            queue: queue.map(str::to_owned),
        })
    }
}

/// The help of the flag `--transport`.
const TRANSPORT: &str = "\
Transport of packets: `auto` (shared memory on one host, UDP otherwise; for peers of either kind), \
`shm`, `udp`, `xdp:INTERFACE[:QUEUE]` (AF_XDP, for peers of `xdp` and `udp`), \
`auto+xdp:INTERFACE[:QUEUE]` (`auto` with AF_XDP in UDP's place), `dpdk[:DEVICE;ip=ADDRESS/BITS]` \
(a device of DPDK, for peers of `udp` and `xdp`), or `auto+dpdk[:DEVICE;ip=ADDRESS/BITS]` (`auto` \
with DPDK in UDP's place)";

/// The flag of `health`, `list` and `call`, and the options of Dunlin.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TransportArgs {
    #[arg(long, value_name = "T", default_value = "auto", help = TRANSPORT)]
    pub(crate) transport: Over,
    #[command(flatten)]
    options: OptionArgs,
}

/// The endpoint flags that `ping`, `echo-server` and `kv` share.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EndpointArgs {
    #[arg(long, value_name = "T", default_value = "auto", help = TRANSPORT)]
    pub(crate) transport: Over,
    /// How long a thread polls for packets before it blocks, such as `50 us`; `spin`: forever
    #[arg(long, value_name = "TIME|spin")]
    idle: Option<String>,
    #[command(flatten)]
    options: OptionArgs,
    /// One JSON object per line, on the standard output
    #[arg(long)]
    pub(crate) json: bool,
}

impl TransportArgs {
    /// The options. The flag overrides the other sources.
    ///
    /// # Errors
    /// An option is wrong.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        let settings = self.transport.set(self.options.load()?)?;
        settings.check()?;
        Ok(settings)
    }
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
        let settings = self.transport.set(settings)?;
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
