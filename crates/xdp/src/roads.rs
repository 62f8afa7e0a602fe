//! The kernel's routes and neighbours: which Ethernet address leads to a peer. A peer's address is
//! never taken from a packet.
//!
//! Two sockets (`rtnetlink(7)`): one for questions, which the kernel answers at once, and one for
//! events, so that what we know follows the kernel's tables. Neither blocks. The kernel confirms a
//! neighbour only when it sends there itself. So `transmit` leaves a packet to the kernel when the
//! kernel reports a neighbour as idle.
//!
//! Made by `open`, in the network namespace of the interface; used by `transmit`.

mod features;
mod message;

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, OwnedFd};

use crate::ffi;
use crate::socket::explain;
pub use features::Features;
pub use message::{Attached, Below, Link, Neighbour};
use message::{Message, Route};

/// Room for one answer; the answer about an interface contains all of its counters.
const ROOM: usize = 1 << 15;

/// Events about interfaces, neighbours, the routes of IPv4 and IPv6, and what routers of IPv6 say
/// about interfaces.
const GROUPS: u32 = 0x1 | 0x4 | 0x40 | 0x400 | 0x800;

/// How a peer is reached over the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Road {
    /// The neighbour to which its packets go: the peer, or a gateway.
    pub hop: IpAddr,
    /// That neighbour.
    pub neighbour: Neighbour,
    /// Bytes of the longest packets on the path, if the kernel knows a limit. That of the interface
    /// may be lower. 0 if only the kernel may send there, because routers may cut the packets.
    pub mtu: Option<u32>,
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
    ///
    /// # Errors
    /// The kernel did not answer.
    fn road(&mut self, to: IpAddr) -> io::Result<Option<Road>>;

    /// The longest packets on the path to an address, as in [`Road::mtu`]. The kernel reports no
    /// change of them when a router refuses longer ones.
    ///
    /// # Errors
    /// The kernel did not answer, or no road leads over the interface.
    fn mtu(&mut self, to: IpAddr) -> io::Result<Option<u32>>;

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
    /// Whether events were lost and nothing was asked since.
    has_lost: bool,
    /// Whether the interface has changed and nothing was asked about it since.
    has_changed: bool,
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
            has_lost: false,
            has_changed: false,
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
    /// `NotFound` if there is none with this index, or that the kernel did not answer.
    pub(crate) fn link(&mut self, index: u32) -> io::Result<Link> {
        match self.ask(&message::ask_for_link(index))? {
            Message::Link(link) => Ok(link),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// The first message of the kernel's answer. It is an error if the kernel has no memory for
    /// one, say, so that this is never taken for the answer that there is nothing.
    fn ask(&mut self, question: &[u8]) -> io::Result<Message> {
        // An answer that came late would be taken for the answer to the next question.
        while ffi::receive(self.questions.as_fd(), &mut self.room).is_ok() {}
        ffi::send(self.questions.as_fd(), question)?;
        message::answer(ffi::receive(self.questions.as_fd(), &mut self.room)?)
    }

    /// Notes what a message of the kernel changes for us.
    fn note(&mut self, message: Message) {
        let change = match message {
            Message::Neighbour(index, ip, neighbour) if index == self.index => {
                Change::Neighbour(ip, neighbour)
            }
            Message::Link(link) if link.index == self.index => {
                // The kernel reports a new length before the limit of IPv6 follows it, and then
                // nothing more.
                self.has_changed = true;
                Change::Link(link)
            }
            Message::LinkGone(index) if index == self.index => Change::LinkGone,
            Message::Route(_) | Message::OtherRoute => Change::Roads,
            _ => return,
        };
        // Routes often change in large numbers, and one look at all roads covers all of the
        // changes.
        if change != Change::Roads || self.changes.back() != Some(&Change::Roads) {
            self.changes.push_back(change);
        }
    }

    /// The route to an address, if it leads over the interface.
    fn route(&mut self, to: IpAddr) -> io::Result<Option<Route>> {
        match self.ask(&message::ask_for_route(to, self.index))? {
            Message::Route(route) if route.index == self.index => Ok(Some(route)),
            _ => Ok(None),
        }
    }

    /// Reads events from the socket. False if there are none.
    fn read_events(&mut self) -> bool {
        let mut room = std::mem::take(&mut self.room);
        let received = ffi::receive(self.events.as_fd(), &mut room);
        let outcome = received.map(|bytes| {
            message::read(bytes).for_each(|message| self.note(message));
        });
        self.room = room;
        match outcome {
            Ok(()) => true,
            // We have not read events for a long time. Those that the socket still has are older
            // than the lost ones, so they are read before the kernel is asked.
            Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => {
                self.has_lost = true;
                true
            }
            Err(_) if self.has_lost || self.has_changed => {
                let answer = self.ask(&message::ask_for_link(self.index));
                self.note_answer(answer)
            }
            Err(_) => false,
        }
    }

    /// Notes the present state of the interface from the kernel's answer and, if events were lost,
    /// that all roads may have changed. False if there is no answer: then the next look asks again.
    fn note_answer(&mut self, answer: io::Result<Message>) -> bool {
        let change = match answer {
            Ok(Message::Link(link)) => Change::Link(link),
            Ok(Message::Refused(libc::ENODEV)) => Change::LinkGone,
            _ => return false,
        };
        self.has_changed = false;
        self.changes.push_back(change);
        if std::mem::take(&mut self.has_lost) {
            self.changes.push_back(Change::Roads);
        }
        true
    }
}

impl Roads for Tables {
    fn road(&mut self, to: IpAddr) -> io::Result<Option<Road>> {
        let Some(route) = self.route(to)? else {
            return Ok(None);
        };
        let hop = route.gateway.unwrap_or(to);
        let neighbour = match self.ask(&message::ask_for_neighbour(hop, self.index))? {
            Message::Neighbour(_, _, neighbour) => neighbour,
            _ => Neighbour::default(),
        };
        Ok(Some(Road {
            hop,
            neighbour,
            mtu: route.mtu,
        }))
    }

    fn mtu(&mut self, to: IpAddr) -> io::Result<Option<u32>> {
        let route = self.route(to)?.ok_or(io::ErrorKind::NotFound)?;
        Ok(route.mtu)
    }

    fn change(&mut self) -> Option<Change> {
        while self.changes.is_empty() && self.read_events() {}
        self.changes.pop_front()
    }
}

#[cfg(test)]
mod tests;
