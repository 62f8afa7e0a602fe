//! Questions and answers of neighbours (ARP, neighbour discovery) at a device.
//!
//! A part of `port`, which decides which packets are messages, and when the device asks.

use std::net::IpAddr;
use std::sync::atomic::Ordering;

use dunlin_packet::Mac;
use dunlin_packet::neighbours::{self as messages, MAX_MESSAGE, Message};

use super::{Port, lock};
use crate::device::Packet;
use crate::tally::Event;

impl Port {
    pub(super) fn on_message(&self, message: Message) {
        self.tally.on(Event::Neighbours, 1);
        match message {
            Message::Question { from, mac } => {
                self.answer(from, mac);
                self.on_hint(from, mac);
            }
            Message::Announcement { of, mac } => self.on_hint(of, mac),
            Message::Answer { of, mac } => self.on_answer(of, mac),
        }
    }

    /// Asks for a neighbour that mentions another address than we know.
    fn on_hint(&self, ip: IpAddr, mac: Mac) {
        if lock(&self.neighbours).on_hint(ip, mac) {
            self.ask(ip, None);
        }
    }

    fn on_answer(&self, of: IpAddr, mac: Mac) {
        let answered = lock(&self.neighbours).on_answer(of, mac);
        let Some(answered) = answered else {
            return self.on_hint(of, mac);
        };
        if answered.changed {
            self.changes.fetch_add(1, Ordering::Release);
        }
        for packet in answered.held {
            self.send_to(mac, packet);
        }
    }

    /// Sends a complete packet, with this Ethernet address as its destination.
    pub(super) fn send_to(&self, mac: Mac, mut packet: Packet) {
        packet.bytes_mut()[..mac.len()].copy_from_slice(&mac);
        self.send_one(packet);
    }

    fn answer(&self, to: IpAddr, mac: Mac) {
        self.send_message(|room| messages::write_answer(&self.home, to, mac, room));
    }

    /// Asks for the Ethernet address of `of`: asks the neighbour at `at`, or all neighbours.
    pub(super) fn ask(&self, of: IpAddr, at: Option<Mac>) {
        self.send_message(|room| messages::write_question(&self.home, of, at, room));
    }

    fn send_message(&self, write: impl FnOnce(&mut [u8]) -> usize) {
        let taken = self.pool.take_one();
        let Some(mut packet) = taken.or_else(|| lock(&self.reserve).take_empty()) else {
            self.tally.on(Event::Unsent, 1);
            return;
        };
        let len = write(&mut packet.bytes_mut()[..MAX_MESSAGE]);
        packet.truncate(len);
        let dropped = self.send_one(packet) as u64;
        self.tally.on(Event::Unsent, dropped);
    }

    pub(super) fn fill_reserve(&self) {
        self.pool.refill(&mut lock(&self.reserve), 1);
    }
}
