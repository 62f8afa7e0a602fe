//! Rules by which a device puts the packets of an endpoint into the endpoint's queue (ntuple
//! filters, `ethtool -N`). Most devices have none; then packets come to the queue that the device
//! chooses, and the program steers those of the endpoint's own queue.
//!
//! A rule outlives the process that makes it, so only the daemon makes rules: one for the first
//! queue of each endpoint whose grant allows it. A rule is used only if the driver shows it
//! afterwards as it was made.
//!
//! Invariant: a rule of ours ends with its endpoint's connection, or when the daemon ends. If the
//! device already has an equal rule, no other is made, and that rule stays. While a connection uses
//! a rule, even the operator's, no other connection changes it. The daemon ends a rule that it has
//! not made only if a connection gets exactly the rule's address and port at another queue, because
//! a killed daemon may have left such a rule. Owned by `daemon`.

mod entry;

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ffi::ethtool;
use entry::{ALL, ANYWHERE, COUNT, END, FlowRule, ONE};

/// The most rules of a device that are looked at.
const MOST: usize = 1 << 14;

/// Attempts to read a list of rules that another program lengthens meanwhile.
const ATTEMPTS: u32 = 8;

/// The drivers of devices, which take commands of `ethtool`.
pub(crate) trait Drivers: Send + Sync + fmt::Debug {
    /// Gives the driver of interface `index` a command that `entry` has made. The answer replaces
    /// it.
    ///
    /// # Errors
    /// The driver's.
    fn ask(&self, index: u32, command: &mut [u8]) -> io::Result<()>;
}

/// The drivers of the kernel.
#[derive(Debug)]
struct Kernel;

impl Drivers for Kernel {
    fn ask(&self, index: u32, command: &mut [u8]) -> io::Result<()> {
        // SAFETY: commands of `entry` have the length of their structure, with as many places as
        // they say.
        unsafe { ethtool::ask(index, command) }
    }
}

/// The rules that the daemon has made, and those that it uses.
#[derive(Debug)]
pub(crate) struct Rules {
    drivers: Arc<dyn Drivers>,
    /// `None` once the daemon has ended.
    live: Mutex<Option<Vec<Live>>>,
}

/// A rule at an interface, which a connection uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Live {
    index: u32,
    entry: FlowRule,
    /// Whether the daemon has made it, and ends it.
    is_ours: bool,
}

impl Live {
    fn end(&self, drivers: &dyn Drivers) {
        if self.is_ours {
            // If the driver does not end the rule, there is no other way to end it.
            let _ = end(drivers, self.index, self.entry.place);
        }
    }
}

/// A rule of an endpoint. Dropping this value ends the rule, if the daemon has made it.
#[derive(Debug)]
pub(crate) struct Kept {
    rules: Arc<Rules>,
    live: Live,
}

impl Default for Rules {
    fn default() -> Self {
        Self::over(Arc::new(Kernel))
    }
}

impl Rules {
    /// No rules yet.
    pub(crate) fn over(drivers: Arc<dyn Drivers>) -> Self {
        Self {
            drivers,
            live: Mutex::new(Some(Vec::new())),
        }
    }

    /// Makes the device of interface `index` put the datagrams for an address into a queue.
    ///
    /// # Errors
    /// The driver's: `Unsupported` if it has no rules. `ResourceBusy` if an endpoint has a rule for
    /// the address, which leads to the first one of its queues; `Other` if the driver does not show
    /// the rule that it has accepted; `ConnectionAborted` if the daemon has ended.
    pub(crate) fn steer(
        self: &Arc<Self>,
        index: u32,
        to: SocketAddr,
        queue: u32,
    ) -> io::Result<Kept> {
        let mut all = self.live();
        let live = all.as_mut().ok_or(io::ErrorKind::ConnectionAborted)?;
        if live.iter().any(|it| it.index == index && it.entry.to == to) {
            let why = "another queue of the endpoint has the rule";
            return Err(io::Error::new(io::ErrorKind::ResourceBusy, why));
        }
        let mut table = Table::read(&*self.drivers, index)?;
        let old = table.rules.iter().filter(|rule| rule.to == to);
        let same = old.clone().find(|rule| rule.queue == queue).copied();
        let entry = match same {
            Some(same) => same,
            None => {
                // A daemon that was killed may have left them.
                for old in old {
                    end(&*self.drivers, index, old.place)?;
                    table.taken.remove(&old.place);
                }
                make(&*self.drivers, index, &table, to, queue)?
            }
        };
        let used = Live {
            index,
            entry,
            is_ours: same.is_none(),
        };
        live.push(used);
        Ok(Kept {
            rules: self.clone(),
            live: used,
        })
    }

    /// Ends all rules. After that, no rule can be made.
    pub(crate) fn end(&self) {
        let ended = self.live().take();
        for rule in ended.into_iter().flatten() {
            rule.end(&*self.drivers);
        }
    }

    fn live(&self) -> MutexGuard<'_, Option<Vec<Live>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut all = self.rules.live();
        // Otherwise the daemon has ended, and its rules with it.
        if let Some(live) = all.as_mut() {
            live.retain(|it| *it != self.live);
            self.live.end(&*self.rules.drivers);
        }
    }
}

/// The number of rules of the device with this number.
///
/// # Errors
/// `Unsupported` if its driver has none; otherwise the driver's.
pub(super) fn count(index: u32) -> io::Result<usize> {
    let mut command = entry::command(COUNT, 0);
    Kernel.ask(index, &mut command)?;
    Ok(entry::count(&command).0)
}

/// The rules of a device.
#[derive(Debug)]
struct Table {
    /// The rules of our form.
    rules: Vec<FlowRule>,
    /// The places of all rules.
    taken: BTreeSet<u32>,
    size: u64,
    /// Whether the driver chooses places.
    chooses: bool,
}

impl Table {
    fn read(drivers: &dyn Drivers, index: u32) -> io::Result<Self> {
        let (places, size, chooses) = places(drivers, index)?;
        // Some drivers fill places that they do not need with zeros.
        let taken: BTreeSet<u32> = places.into_iter().collect();
        let shown = taken
            .iter()
            .filter_map(|place| show(drivers, index, *place));
        Ok(Self {
            rules: shown.collect(),
            size,
            chooses,
            taken,
        })
    }

    /// A free place. Drivers compare packets with the rule at the lowest place first, so this is
    /// the last free place, which leaves the rules of the operator in front.
    fn place(&self) -> u32 {
        let last = u32::try_from(self.size).unwrap_or(0);
        let mut free = (0..last).rev().filter(|place| !self.taken.contains(place));
        match self.chooses {
            true => ANYWHERE,
            // The driver says that there is no such place.
            false => free.next().unwrap_or(last),
        }
    }
}

/// The places of all rules, the number of places, and whether the driver chooses among them.
///
/// Drivers differ about a list with room for more places than there are rules: mlx5 looks for
/// further rules until it fails. So the list has the length that the driver has just reported;
/// `ethtool` does the same. If a rule was added meanwhile, the driver returns `EMSGSIZE`.
fn places(drivers: &dyn Drivers, index: u32) -> io::Result<(Vec<u32>, u64, bool)> {
    let mut attempt = 1;
    loop {
        let mut command = entry::command(COUNT, 0);
        drivers.ask(index, &mut command)?;
        let (count, chooses) = entry::count(&command);
        if count > MOST {
            return Err(io::Error::other(format!("the device has {count} rules")));
        }
        let mut command = entry::command(ALL, count);
        match drivers.ask(index, &mut command) {
            Err(error) if error.raw_os_error() == Some(libc::EMSGSIZE) && attempt < ATTEMPTS => {
                attempt += 1;
            }
            Err(error) => return Err(error),
            Ok(()) => {
                let (places, size) = entry::places(&command);
                return Ok((places, size, chooses));
            }
        }
    }
}

/// The rule at a place, if it has our form.
fn show(drivers: &dyn Drivers, index: u32, place: u32) -> Option<FlowRule> {
    let mut command = entry::about(ONE, place);
    drivers.ask(index, &mut command).ok()?;
    FlowRule::of(&command)
}

/// Makes a rule, and checks that the driver has it. `table`: the rules until now.
fn make(
    drivers: &dyn Drivers,
    index: u32,
    table: &Table,
    to: SocketAddr,
    queue: u32,
) -> io::Result<FlowRule> {
    let place = table.place();
    let mut command = FlowRule { to, queue, place }.to_command();
    drivers.ask(index, &mut command)?;
    // The driver has written the place that it chose. The rest of its answer does not matter.
    let place = entry::place(&command);
    let made = FlowRule { to, queue, place };
    if show(drivers, index, place) == Some(made) {
        return Ok(made);
    }
    undo(drivers, index, table, made);
    Err(io::Error::other(
        "the driver does not show the rule that it has accepted",
    ))
}

/// Ends a rule that the driver has accepted, but does not show at the place that it named. Ends the
/// rule that is at that place now, and all rules for the address, except at places that were taken
/// before.
fn undo(drivers: &dyn Drivers, index: u32, before: &Table, made: FlowRule) {
    let now = Table::read(drivers, index).ok();
    let shown = now.iter().flat_map(|table| &table.rules);
    let same = shown.filter(|rule| rule.to == made.to);
    let places: BTreeSet<u32> = same
        .map(|rule| rule.place)
        .chain([made.place])
        .filter(|place| !before.taken.contains(place))
        .collect();
    for place in places {
        let _ = end(drivers, index, place);
    }
}

fn end(drivers: &dyn Drivers, index: u32, place: u32) -> io::Result<()> {
    drivers.ask(index, &mut entry::about(END, place))
}

#[cfg(test)]
pub(super) mod tests;
