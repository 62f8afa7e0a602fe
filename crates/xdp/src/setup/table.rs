//! The table of the daemon: which user may have which queues, addresses and ports of which
//! interface.
//!
//! Pure: the caller decides whether a name is the name of an interface (`is_it`). Made by the
//! command; used by `daemon`.

use std::io;
use std::net::IpAddr;
use std::ops::RangeInclusive;

use crate::ask::message::Claim;
use crate::steering::Mode;
use crate::umem::{FRAME, MAX_FRAMES};

/// The part of an interface that one user may have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The user's number.
    pub user: u32,
    /// The interface, by name; for endpoints of a VLAN, the one below.
    pub interface: String,
    /// The number of the VLAN; 0 if packets have no tag.
    pub vlan: u16,
    /// Where the kernel runs the program at this interface.
    pub mode: Mode,
    /// The addresses at which the user's endpoints may be.
    pub addresses: Vec<IpAddr>,
    /// Their ports.
    pub ports: RangeInclusive<u16>,
    /// The interface's queues.
    pub queues: RangeInclusive<u32>,
    /// The most bytes of a queue's region of frames, which the daemon pins whatever the user's
    /// limit is.
    pub umem_bytes: u64,
    /// Whether the daemon asks the device to put the packets of each endpoint into the endpoint's
    /// queue, by a rule that ends with the endpoint. Devices without rules, and grants of a VLAN,
    /// have none. It is not tested on a device, because none was available.
    pub rules: bool,
}

/// All grants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Table(Vec<Grant>);

impl Table {
    /// A table of these grants.
    ///
    /// # Errors
    /// `InvalidInput`, with a sentence, if a grant grants nothing, if the grants of one interface
    /// name different modes, or if two users may have the same address, port and VLAN.
    pub fn new(grants: Vec<Grant>) -> io::Result<Self> {
        for (at, grant) in grants.iter().enumerate() {
            grant.check()?;
            for other in &grants[..at] {
                grant.check_with(other)?;
            }
        }
        Ok(Self(grants))
    }

    /// The grants of a user at a queue of the interface that `is_it` recognizes by its name; there
    /// is at least one.
    ///
    /// # Errors
    /// `PermissionDenied` if there is none, or if the program runs in the other mode there.
    fn at_queue(
        &self,
        user: u32,
        is_it: impl Fn(&str) -> bool,
        (queue, mode): (u32, Mode),
    ) -> io::Result<Vec<&Grant>> {
        let is_meant = |grant: &&Grant| {
            grant.user == user && grant.queues.contains(&queue) && is_it(&grant.interface)
        };
        let at_queue: Vec<_> = self.0.iter().filter(is_meant).collect();
        let Some(first) = at_queue.first() else {
            return Err(denied(user, &format!("queue {queue} of this interface")));
        };
        if first.mode != mode {
            let why = format!(
                "the table says that this interface has the mode {:?} (xdp.mode)",
                first.mode
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
        }
        Ok(at_queue)
    }

    /// Checks that a user may have a queue, in this mode and with this number of frames.
    ///
    /// # Errors
    /// The refusal: `PermissionDenied`, or `OutOfMemory` if the user may have it with fewer frames.
    pub(super) fn permits_queue(
        &self,
        user: u32,
        is_it: impl Fn(&str) -> bool,
        of_queue: (u32, Mode),
        frames: u32,
    ) -> io::Result<()> {
        let grants = self.at_queue(user, is_it, of_queue)?;
        let most = most_bytes(&grants);
        match u64::from(frames) * FRAME as u64 <= most {
            true => Ok(()),
            false => {
                let why = format!("user {user} may have a region of {most} bytes (xdp.umem)");
                Err(io::Error::new(io::ErrorKind::OutOfMemory, why))
            }
        }
    }

    /// Checks that a user may have the packets for an address at a queue, in this mode and with
    /// rings of this number of entries. Returns the grant that permits it.
    ///
    /// # Errors
    /// The refusal: `PermissionDenied`, or `InvalidInput` for the number of entries.
    pub(super) fn permits_claim(
        &self,
        user: u32,
        is_it: impl Fn(&str) -> bool,
        of_queue: (u32, Mode),
        claim: &Claim,
        entries: u32,
    ) -> io::Result<&Grant> {
        let grants = self.at_queue(user, is_it, of_queue)?;
        check_entries(entries, most_bytes(&grants))?;
        match grants.into_iter().find(|grant| grant.has(claim)) {
            Some(grant) => Ok(grant),
            None => {
                let Claim { address, vlan, .. } = claim;
                let tag = match vlan {
                    0 => String::new(),
                    vlan => format!(" of VLAN {vlan}"),
                };
                let what = format!("{address}{tag} at queue {} of this interface", of_queue.0);
                Err(denied(user, &what))
            }
        }
    }
}

impl Grant {
    fn has(&self, claim: &Claim) -> bool {
        self.vlan == claim.vlan
            && self.addresses.contains(&claim.address.ip())
            && self.ports.contains(&claim.address.port())
    }

    fn check(&self) -> io::Result<()> {
        let Self {
            user, interface, ..
        } = self;
        let lacks = match self {
            _ if self.addresses.is_empty() => "no address",
            _ if self.ports.is_empty() || *self.ports.start() == 0 => "no port",
            _ if self.queues.is_empty() => "no queue",
            _ => return Ok(()),
        };
        Err(invalid(&format!(
            "the grant of user {user} at {interface} has {lacks}"
        )))
    }

    fn check_with(&self, other: &Self) -> io::Result<()> {
        if self.interface != other.interface {
            return Ok(());
        }
        let interface = &self.interface;
        if self.mode != other.mode {
            return Err(invalid(&format!(
                "the grants of {interface} name different modes; an interface has one"
            )));
        }
        let shares = self.vlan == other.vlan
            && self.ports.start() <= other.ports.end()
            && other.ports.start() <= self.ports.end();
        let shared = other
            .addresses
            .iter()
            .find(|ip| self.addresses.contains(ip));
        match shared.filter(|_| shares && self.user != other.user) {
            Some(ip) => Err(invalid(&format!(
                "users {} and {} may both have ports of {ip} at {interface}, so either could take \
                 the packets of the other",
                other.user, self.user
            ))),
            None => Ok(()),
        }
    }
}

/// The most bytes of a region that one of these grants permits.
fn most_bytes(grants: &[&Grant]) -> u64 {
    let bytes = grants.iter().map(|grant| grant.umem_bytes);
    bytes.max().unwrap_or(0)
}

/// Checks the entries of an endpoint's rings: one for each frame that it sends, which are at most
/// half of the region. So the rings of one connection need less memory than the region may have.
fn check_entries(entries: u32, region: u64) -> io::Result<()> {
    let most = (region / FRAME as u64).min(u64::from(MAX_FRAMES)) / 2;
    match (1..=most).contains(&u64::from(entries)) {
        true => Ok(()),
        false => Err(invalid(&format!(
            "a ring has 1 to {most} entries, half of the frames that the table grants (xdp.umem)"
        ))),
    }
}

fn denied(user: u32, what: &str) -> io::Error {
    let why = format!("the table does not grant user {user} {what}");
    io::Error::new(io::ErrorKind::PermissionDenied, why)
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

#[cfg(test)]
mod tests;
