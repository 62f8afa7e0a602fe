//! The kernel's routes and neighbours: which Ethernet address leads to a peer. A peer's address is
//! never taken from a packet.
//!
//! Two sockets (`rtnetlink(7)`): one for questions, which the kernel answers at once, and one for
//! events, so that what we know follows the kernel's tables. Neither blocks. The kernel confirms a
//! neighbour only when it sends there itself. So `transmit` leaves a packet to the kernel when the
//! kernel reports a neighbour as idle.
//!
//! Made by `open`, in the network namespace of the interface; used by `transmit`.

mod message;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use crate::ffi;
use crate::socket::explain;
use message::Message;
pub use message::{Below, Link, Neighbour};

/// Room for one answer; the answer about an interface contains all of its counters.
const ROOM: usize = 1 << 15;

/// Events about interfaces, neighbours, and the routes of IPv4 and IPv6.
const GROUPS: u32 = 0x1 | 0x4 | 0x40 | 0x400;

/// How a peer is reached over the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Road {
    /// The neighbour to which its packets go: the peer, or a gateway.
    pub hop: IpAddr,
    /// That neighbour.
    pub neighbour: Neighbour,
}

/// A change of the kernel's tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Change {
    /// A neighbour at the interface.
    Neighbour(IpAddr, Neighbour),
    /// The interface.
    Link(Link),
    /// The interface is gone.
    LinkGone,
    /// Routes: the caller must ask for every road again.
    Roads,
    /// The interface no longer has the program that steered packets.
    Unsteered,
}

/// Finds the roads, and reports changes of them.
pub trait Roads: Send + fmt::Debug {
    /// The road to an address; `None` if none leads over the interface.
    fn road(&mut self, to: IpAddr) -> Option<Road>;

    /// The next change, in order.
    fn change(&mut self) -> Option<Change>;
}

/// The kernel's tables.
#[derive(Debug)]
pub struct Tables {
    questions: OwnedFd,
    events: OwnedFd,
    /// The interface over which all roads lead.
    index: u32,
    changes: VecDeque<Change>,
    room: Vec<u8>,
}

impl Tables {
    /// Opens the tables for roads over interface `index`, and describes it.
    ///
    /// # Errors
    /// The kernel's; `InvalidInput` if the interface has no Ethernet address.
    pub fn open(index: u32) -> io::Result<(Self, Link)> {
        let socket = || ffi::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_ROUTE);
        let (questions, events) = (socket()?, socket()?);
        ffi::bind_netlink(events.as_fd(), GROUPS)
            .map_err(|error| explain(error, "the kernel reports no changes of routes"))?;
        let mut tables = Self {
            questions,
            events,
            index,
            changes: VecDeque::new(),
            room: vec![0; ROOM],
        };
        let link = tables.link(index)?;
        match link.mac {
            Some(_) => Ok((tables, link)),
            None => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the interface has no Ethernet address",
            )),
        }
    }

    /// Describes an interface.
    ///
    /// # Errors
    /// `NotFound` if there is none with this index.
    pub(crate) fn link(&mut self, index: u32) -> io::Result<Link> {
        match self.ask(&message::ask_for_link(index)) {
            Some(Message::Link(link)) => Ok(link),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The first message of the kernel's answer.
    fn ask(&mut self, question: &[u8]) -> Option<Message> {
        // An answer that came late would be taken for the answer to the next question.
        while ffi::receive(self.questions.as_fd(), &mut self.room).is_ok() {}
        ffi::send(self.questions.as_fd(), question).ok()?;
        let answer = ffi::receive(self.questions.as_fd(), &mut self.room).ok()?;
        message::read(answer).next()
    }

    /// Notes what a message of the kernel changes for us.
    fn note(&mut self, message: Message) {
        let change = match message {
            Message::Neighbour(index, ip, neighbour) if index == self.index => {
                Change::Neighbour(ip, neighbour)
            }
            Message::Link(link) if link.index == self.index => Change::Link(link),
            Message::LinkGone(index) if index == self.index => Change::LinkGone,
            Message::Route(..) | Message::OtherRoute => Change::Roads,
            _ => return,
        };
        // Routes often change in large numbers, and one look at all roads covers all of the
        // changes.
        if change != Change::Roads || self.changes.back() != Some(&Change::Roads) {
            self.changes.push_back(change);
        }
    }
}

impl Roads for Tables {
    fn road(&mut self, to: IpAddr) -> Option<Road> {
        let Some(Message::Route(index, gateway)) =
            self.ask(&message::ask_for_route(to, self.index))
        else {
            return None;
        };
        if index != self.index {
            return None;
        }
        let hop = gateway.unwrap_or(to);
        let neighbour = match self.ask(&message::ask_for_neighbour(hop, index)) {
            Some(Message::Neighbour(_, _, neighbour)) => neighbour,
            _ => Neighbour::default(),
        };
        Some(Road { hop, neighbour })
    }

    fn change(&mut self) -> Option<Change> {
        while self.changes.is_empty() {
            let mut room = std::mem::take(&mut self.room);
            let received = ffi::receive(self.events.as_fd(), &mut room);
            let outcome = match received {
                Ok(bytes) => {
                    message::read(bytes).for_each(|message| self.note(message));
                    true
                }
                // Events were lost, because we have not read them for a long time.
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                    self.changes.push_back(Change::Roads);
                    true
                }
                Err(_) => false,
            };
            self.room = room;
            if !outcome {
                break;
            }
        }
        self.changes.pop_front()
    }
}

#[cfg(test)]
mod tests;
