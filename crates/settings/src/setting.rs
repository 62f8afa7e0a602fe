//! A row of the table: an option's name, unit, range and meaning.
//!
//! Invariant: everything here is constant; `settings/tests/complete.rs` compares it with the option
//! structs. Read by `settings.rs`, by `dunlin config`, and by the test that writes the page about
//! options.

use std::ops::RangeInclusive;

use dunlin_core::Config;
use dunlin_nexus::{ConnectOptions, Idle};
use dunlin_transport::shm::Options as ShmOptions;
use dunlin_transport::udp::Options as UdpOptions;

use crate::field::Field;
use crate::options::{
    ChannelOptions, DpdkOptions, KvOptions, NexusOptions, RemoteName, ReplicaOptions,
    SequencerOptions, ServerOptions, XdpOptions,
};
use crate::value::Value;

/// One option that an operator can set.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    pub(super) name: &'static str,
    pub(super) unit: Unit,
    pub(super) numbers: Numbers,
    /// Words that are allowed in place of a number. If the field can be `None`, the first word
    /// means `None`.
    pub(super) words: &'static [&'static str],
    pub(super) meaning: &'static str,
    /// The option from which this one takes its value while it is not set.
    pub(super) follows: Option<&'static str>,
    pub(super) field: FieldOf,
}

/// The unit of an option's values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// On or off.
    Switch,
    /// One of the row's words; no number is allowed.
    Word,
    /// A plain number.
    Count,
    /// A time: the nanoseconds in one unit of a plain number, and in one unit of the field.
    Time { plain: u64, field: u64 },
    /// Bytes.
    Bytes,
    /// Bytes per second.
    Rate,
    /// An IP address.
    Ip,
    /// A host or IP address, and a port.
    Address,
    /// The name of a network interface.
    Interface,
    /// The absolute path of a file.
    Path,
    /// A device of DPDK, with its address.
    Device,
    /// A transport for peers of other hosts.
    Remote,
    /// A list of networks.
    Networks,
}

/// Numbers that a field may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Numbers {
    pub(super) least: u64,
    pub(super) most: u64,
    pub(super) shape: Shape,
}

/// The allowed numbers between the smallest and the largest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Shape {
    Any,
    PowerOfTwo,
    MultipleOf(u64),
}

/// A field of a struct of options.
pub(super) type Lens<S> = fn(&mut S) -> &mut dyn Field;

/// Selects the field that an option sets, by the struct that has it.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldOf {
    Nexus(Lens<NexusOptions>),
    Endpoint(Lens<Config>),
    Idle(Lens<Idle>),
    Auto(Lens<RemoteName>),
    Shm(Lens<ShmOptions>),
    Udp(Lens<UdpOptions>),
    Xdp(Lens<XdpOptions>),
    Dpdk(Lens<DpdkOptions>),
    Session(Lens<ConnectOptions>),
    Channel(Lens<ChannelOptions>),
    Server(Lens<ServerOptions>),
    Kv(Lens<KvOptions>),
    Sequencer(Lens<SequencerOptions>),
    Replica(Lens<ReplicaOptions>),
}

/// Plain numbers are nanoseconds.
pub(super) const NANOS: Unit = time(1);
/// Plain numbers are microseconds.
pub(super) const MICROS: Unit = time(US);
/// Plain numbers are milliseconds.
pub(super) const MILLIS: Unit = time(MS);
/// Plain numbers are seconds.
pub(super) const SECONDS: Unit = time(S);

/// A microsecond, a millisecond, a second and an hour in nanoseconds.
pub(super) const US: u64 = 1_000;
pub(super) const MS: u64 = 1_000_000;
pub(super) const S: u64 = 1_000_000_000;
pub(super) const HOUR: u64 = 3_600 * S;

const fn time(plain: u64) -> Unit {
    Unit::Time { plain, field: 1 }
}

impl Setting {
    /// The name by which files and [`Settings::with`](crate::Settings::with) know the option, such
    /// as `endpoint.rto_floor`.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The environment variable that sets the option, such as `DUNLIN_ENDPOINT_RTO_FLOOR`.
    pub fn variable(&self) -> String {
        format!("DUNLIN_{}", self.name.replace('.', "_").to_uppercase())
    }

    /// The option's effect, in one sentence.
    pub const fn meaning(&self) -> &'static str {
        self.meaning
    }

    /// The unit of a plain number; empty if values are not numbers.
    pub const fn unit(&self) -> &'static str {
        match self.unit {
            Unit::Switch
            | Unit::Word
            | Unit::Ip
            | Unit::Address
            | Unit::Interface
            | Unit::Path
            | Unit::Device
            | Unit::Remote
            | Unit::Networks => "",
            Unit::Count => "count",
            Unit::Bytes => "B",
            Unit::Rate => "B/s",
            Unit::Time { plain, .. } => match plain {
                1 => "ns",
                US => "us",
                MS => "ms",
                _ => "s",
            },
        }
    }

    /// The option from which this one takes its value while it is not set, if there is one.
    pub const fn follows(&self) -> Option<&'static str> {
        self.follows
    }

    /// The value of an option that is not set.
    pub(super) fn default_value(&self) -> Value {
        match self.field {
            FieldOf::Nexus(lens) => lens(&mut NexusOptions::default()).read(),
            FieldOf::Endpoint(lens) => lens(&mut Config::default()).read(),
            FieldOf::Idle(lens) => lens(&mut Idle::default()).read(),
            FieldOf::Auto(lens) => lens(&mut RemoteName::default()).read(),
            FieldOf::Shm(lens) => lens(&mut ShmOptions::default()).read(),
            FieldOf::Udp(lens) => lens(&mut UdpOptions::default()).read(),
            FieldOf::Session(lens) => lens(&mut ConnectOptions::default()).read(),
            FieldOf::Channel(lens) => lens(&mut ChannelOptions::default()).read(),
            FieldOf::Xdp(lens) => lens(&mut XdpOptions::default()).read(),
            FieldOf::Dpdk(lens) => lens(&mut DpdkOptions::default()).read(),
            FieldOf::Server(lens) => lens(&mut ServerOptions::default()).read(),
            FieldOf::Kv(lens) => lens(&mut KvOptions::default()).read(),
            FieldOf::Sequencer(lens) => lens(&mut SequencerOptions::default()).read(),
            FieldOf::Replica(lens) => lens(&mut ReplicaOptions::default()).read(),
        }
    }

    /// A row with a name, a unit and a field, and with defaults for the rest.
    pub(super) const fn new(
        name: &'static str,
        unit: Unit,
        field: FieldOf,
        meaning: &'static str,
    ) -> Self {
        Self {
            name,
            unit,
            numbers: Numbers {
                least: 0,
                most: 0,
                shape: Shape::Any,
            },
            words: &[],
            meaning,
            follows: None,
            field,
        }
    }

    /// Limits the number to a range.
    pub(super) const fn within(mut self, range: RangeInclusive<u64>) -> Self {
        self.numbers.least = *range.start();
        self.numbers.most = *range.end();
        self
    }

    pub(super) const fn shape(mut self, shape: Shape) -> Self {
        self.numbers.shape = shape;
        self
    }

    pub(super) const fn words(mut self, words: &'static [&'static str]) -> Self {
        self.words = words;
        self
    }

    pub(super) const fn follow(mut self, name: &'static str) -> Self {
        self.follows = Some(name);
        self
    }
}

impl Numbers {
    pub(super) const fn has(&self, number: u64) -> bool {
        let fits = match self.shape {
            Shape::Any => true,
            Shape::PowerOfTwo => number.is_power_of_two(),
            Shape::MultipleOf(step) => number.is_multiple_of(step),
        };
        self.least <= number && number <= self.most && fits
    }

    /// The allowed number nearest to `number`; the smaller one if two are equally near.
    pub(super) fn nearest(&self, number: u64) -> u64 {
        let number = number.clamp(self.least, self.most);
        let (below, above) = match self.shape {
            Shape::Any => (number, Some(number)),
            Shape::PowerOfTwo => (
                number.checked_ilog2().map_or(0, |bit| 1 << bit),
                number.checked_next_power_of_two(),
            ),
            Shape::MultipleOf(step) => {
                let below = number - number % step;
                (below, below.checked_add(step))
            }
        };
        let above = above.filter(|above| self.has(*above));
        let is_nearer = |above: &u64| !self.has(below) || above - number < number - below;
        above.filter(is_nearer).unwrap_or(below)
    }
}
