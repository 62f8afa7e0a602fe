//! The decisions of a seed about its run, planted bugs, and counts, which show that the runs cover
//! the intended cases.

use dunlin_core::Nanos;
use dunlin_kv::store::Mode;
use dunlin_kv::{FleetOptions, Options, WhenDown};
use dunlin_sim::Rng;

/// The most ports of a server. After each start, it uses some of them.
const MOST_PORTS: usize = 3;

/// A planted bug.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bug {
    None,
    /// Every get misses.
    #[cfg(feature = "mutants")]
    Miss,
    /// A compare-and-set does not compare.
    #[cfg(feature = "mutants")]
    LostCompare,
    /// An expired item is returned.
    #[cfg(feature = "mutants")]
    Expired,
    /// A client repeats a write that may have happened.
    #[cfg(feature = "mutants")]
    RepeatedWrite,
    /// A client never replaces its first map, and servers accept requests that it misroutes.
    #[cfg(feature = "mutants")]
    OldMap,
    /// A client returns the item of its previous get, even if it was written meanwhile.
    #[cfg(feature = "mutants")]
    OldRead,
    /// A write stops in the middle of its value.
    #[cfg(feature = "mutants")]
    HalfWrite,
    /// A get continues with the slices of a value that was overwritten meanwhile.
    #[cfg(feature = "mutants")]
    MixedSlices,
    /// An item is removed from a cache's log, and a get still reads the bytes there.
    #[cfg(feature = "mutants")]
    LateEntry,
    /// A client looks for a key of a server that is down at another server.
    #[cfg(feature = "mutants")]
    OtherOwner,
    /// An operation for a server that is down waits for it.
    #[cfg(feature = "mutants")]
    Waits,
}

#[cfg(feature = "mutants")]
impl Bug {
    /// Every bug, and a part of the message that must report it.
    pub(crate) const PLANTED: [(Self, &str); 11] = [
        (Self::Miss, "no order explains"),
        (Self::LostCompare, "no order explains"),
        (Self::Expired, "no order explains"),
        (Self::RepeatedWrite, "no order explains"),
        (Self::OldMap, "no order explains"),
        (Self::OldRead, "no order explains"),
        (Self::HalfWrite, "no client has written"),
        (Self::MixedSlices, "no client has written"),
        (Self::LateEntry, "no order explains"),
        (Self::OtherOwner, "which is down"),
        (Self::Waits, "which is down"),
    ];

    /// The mode of tables in which the bug can show.
    const fn mode(self) -> Option<Mode> {
        match self {
            Self::LateEntry => Some(Mode::Cache),
            _ => None,
        }
    }

    /// Whether the bug makes the operations of some key unexplainable.
    pub(crate) const fn breaks_histories(self) -> bool {
        !matches!(self, Self::Waits)
    }

    /// Whether the bug needs several servers.
    const fn is_of_fleets(self) -> bool {
        matches!(self, Self::OtherOwner | Self::Waits)
    }
}

/// The time between two look-ups of the servers' name.
const LOOKUP: Nanos = Nanos::from_millis(300);

/// The decisions of a seed before its run begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) bug: Bug,
    pub(crate) mode: Mode,
    pub(crate) servers: usize,
    /// Ports of each server.
    pub(crate) ports: usize,
    pub(crate) when_down: WhenDown,
    pub(crate) crashes: u64,
    /// How often the network is cut between some clients and servers.
    pub(crate) cuts: u64,
    /// The number of changes of the list.
    pub(crate) lists: u64,
}

impl Plan {
    /// In every third run, there is one server and operations wait for it; other runs have 3 to 30
    /// servers.
    pub(crate) fn draw(seed: u64, bug: Bug, rng: &mut Rng) -> Self {
        let is_fleet = !seed.is_multiple_of(3);
        let mode = if rng.one_in(2) {
            Mode::Cache
        } else {
            Mode::Store
        };
        #[cfg(feature = "mutants")]
        let (is_fleet, mode) = (is_fleet || bug.is_of_fleets(), bug.mode().unwrap_or(mode));
        if !is_fleet {
            return Self {
                bug,
                mode,
                servers: 1,
                ports: MOST_PORTS,
                when_down: WhenDown::Wait,
                crashes: rng.between(1, 4),
                cuts: rng.between(1, 6),
                lists: 0,
            };
        }
        let servers = usize::try_from(rng.log_between(3, 30)).unwrap();
        let is_store = mode == Mode::Store;
        Self {
            bug,
            mode,
            servers,
            ports: usize::try_from(rng.between(1, 2)).unwrap(),
            when_down: match is_store || rng.one_in(3) {
                true => WhenDown::Fail,
                false => WhenDown::Miss,
            },
            crashes: rng.between(1, 2 + servers as u64),
            cuts: rng.between(1, 6),
            lists: rng.below(4),
        }
    }

    /// The options of a client. One client has the planted bug, if it is a bug of clients.
    pub(crate) fn options(&self, client: usize) -> FleetOptions {
        let options = FleetOptions {
            client: Options {
                expected_value: 4,
                multi_answer: 100,
                ..Options::DEFAULT
            },
            when_down: self.when_down,
            lookup: (self.lists > 0).then_some(LOOKUP),
        };
        #[cfg(feature = "mutants")]
        let options = FleetOptions {
            client: Options {
                mutant: match self.bug {
                    Bug::RepeatedWrite => Some(dunlin_kv::Mutant::RepeatedWrite),
                    Bug::OldMap if client == 0 => Some(dunlin_kv::Mutant::OldMap),
                    Bug::OldRead => Some(dunlin_kv::Mutant::OldRead),
                    Bug::OtherOwner => Some(dunlin_kv::Mutant::OtherOwner),
                    _ => None,
                },
                ..options.client
            },
            when_down: match self.bug {
                Bug::Waits => WhenDown::Wait,
                _ => options.when_down,
            },
            ..options
        };
        let _ = (client, self.bug);
        options
    }

    /// Bytes of a partition's table. A cache soon has no room for the long values.
    pub(crate) const fn memory(&self) -> usize {
        match self.mode {
            Mode::Cache => 640 << 10,
            Mode::Store => 4 << 20,
        }
    }
}

/// Counts of events of runs.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sum {
    pub(crate) operations: u64,
    pub(crate) found: u64,
    pub(crate) unknown: u64,
    pub(crate) differs: u64,
    pub(crate) expired: u64,
    pub(crate) evicted: u64,
    pub(crate) restarts: u64,
    /// Cuts of the network, and sessions that ended because of them.
    pub(crate) cuts: u64,
    pub(crate) cut_off: u64,
    /// Operations that ended because a server was down.
    pub(crate) refused: u64,
    /// Servers, over all runs.
    pub(crate) servers: u64,
    /// Changes of clients' lists.
    pub(crate) lists: u64,
}

impl Sum {
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            operations: self.operations + other.operations,
            found: self.found + other.found,
            unknown: self.unknown + other.unknown,
            differs: self.differs + other.differs,
            expired: self.expired + other.expired,
            evicted: self.evicted + other.evicted,
            restarts: self.restarts + other.restarts,
            cuts: self.cuts + other.cuts,
            cut_off: self.cut_off + other.cut_off,
            refused: self.refused + other.refused,
            servers: self.servers + other.servers,
            lists: self.lists + other.lists,
        }
    }
}
