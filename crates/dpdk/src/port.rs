//! A device as the endpoints of this process share it: a queue in each direction, one address, and
//! one table of neighbours. It stays open, and keeps its address, as long as the process lives.
//!
//! Any endpoint receives for all: packets of the others go to their inboxes. If the device can
//! steer packets by port, an endpoint may have a further queue of its own (`rules`).
//!
//! Invariants: a thread that holds the lock of a queue of received packets may take the other
//! locks, and a thread that holds one of those takes none; each lock is held for a burst at most.
//! Called by `receive`, `transmit`, `connect` and `keeper`.

mod asking;
mod seat;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use dunlin_msgbuf::RegionId;
use dunlin_packet::neighbours as messages;
use dunlin_packet::{Home, Mac, Refused, Seen, parse, port_of};

use crate::device::{BATCH, Packet, Parts, Pool, Received, RxQueue, Tails, TxPackets, TxQueue};
use crate::inbox::{Arrived, Inbox, Room, payload_of};
use crate::link::Link;
use crate::neighbours::{Hold, Neighbours};
use crate::rules::{Own, Rules};
use crate::seats::Seats;
use crate::site::Site;
use crate::sleep::Sleepers;
use crate::tally::{Event, NAMES, Tally};

pub(crate) use seat::Seat;

/// The most bursts that a thread receives for other endpoints at once.
const MOST_BURSTS: usize = 8;

/// A device that endpoints share.
#[derive(Debug)]
pub(crate) struct Port {
    /// The address of the device, with port 0, which no packet has.
    home: Home,
    site: Site,
    pool: Pool,
    mtu: u16,
    rx_descriptors: u32,
    bytes_per_second: u64,
    /// Whether it can be asked for packets that it has sent.
    answers: bool,
    /// Whether it can read data of packets in the msgbufs.
    lends: bool,
    receiving: Mutex<RxQueue>,
    rules: Rules,
    sending: Mutex<TxQueue>,
    neighbours: Mutex<Neighbours<Packet>>,
    /// Empty packets for questions and answers while the pool has none.
    reserve: Mutex<TxPackets>,
    /// Number of changes of neighbours' addresses.
    changes: AtomicU32,
    seats: Seats,
    /// The room of the endpoints' inboxes.
    room: Arc<Room>,
    /// Whether an endpoint has received since the keeper last looked.
    is_polled: AtomicBool,
    sleepers: Sleepers,
    tally: Tally,
    link: Link,
}

/// The packets of a burst.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Looked {
    /// The number of all packets, and of those that were refused as corrupt.
    pub(crate) packets: usize,
    pub(crate) corrupt: u64,
}

impl Port {
    /// The port of an open device.
    pub(crate) fn new(site: Site, parts: Parts) -> Self {
        let Parts {
            rx,
            ruled,
            tx,
            pool,
            bell,
            facts,
        } = parts;
        let mut reserve = pool.tx_packets();
        pool.refill(&mut reserve, 1);
        let tally = Tally::default();
        tally.on(Event::Interrupts, u64::from(bell.fd().is_some()));
        Self {
            home: Home {
                address: SocketAddr::new(site.ip, 0),
                vlan: site.vlan,
                mac: facts.mac,
            },
            pool,
            mtu: facts.mtu,
            rx_descriptors: facts.rx_descriptors,
            bytes_per_second: facts.bytes_per_second,
            answers: facts.answers != 0,
            lends: facts.lends != 0,
            receiving: Mutex::new(rx),
            rules: Rules::new(ruled),
            sending: Mutex::new(tx),
            neighbours: Mutex::new(Neighbours::new(site.most_held())),
            reserve: Mutex::new(reserve),
            changes: AtomicU32::new(0),
            seats: Seats::new(),
            room: Arc::new(Room::new(site.most_in_inboxes())),
            is_polled: AtomicBool::new(false),
            sleepers: Sleepers::new(bell),
            tally,
            link: Link::default(),
            site,
        }
    }

    /// The settings with which it was opened.
    pub(crate) fn site(&self) -> &Site {
        &self.site
    }

    /// The pool of its packets.
    #[inline]
    pub(crate) fn pool(&self) -> Pool {
        self.pool
    }

    /// Bytes of the longest IP packet.
    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    /// How many packets can wait in the device.
    pub(crate) fn rx_descriptors(&self) -> u32 {
        self.rx_descriptors
    }

    /// The rate of the link, if the device knows it.
    pub(crate) fn bytes_per_second(&self) -> Option<u64> {
        (self.bytes_per_second > 0).then_some(self.bytes_per_second)
    }

    /// Gives an endpoint a place: at the port `wanted`, or at a free one if that is 0.
    ///
    /// # Errors
    /// `AddrInUse` if another endpoint has it, or all are taken; `InvalidInput` if the pool is too
    /// small for another endpoint.
    pub(crate) fn seat(&'static self, wanted: u16) -> io::Result<Seat> {
        let inbox = self.seats.take(wanted, |number, count| {
            self.site
                .check_pool(self.rx_descriptors, count)
                .map_err(|what| io::Error::new(io::ErrorKind::InvalidInput, what))?;
            let home = Home {
                address: SocketAddr::new(self.site.ip, number),
                ..self.home
            };
            Inbox::new(home, self.rx_descriptors as usize, self.room.clone())
        });
        let inbox = inbox.map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                let what = format!("port {wanted} of {} is in use", self.site.ip);
                io::Error::new(io::ErrorKind::AddrInUse, what)
            }
            _ => error,
        })?;
        let own = self.rules.take(inbox.home().address);
        match own {
            Some(_) => self.tally.on(Event::Ruled, 1),
            None => self
                .tally
                .on(Event::Unruled, u64::from(self.site.queues > 1)),
        }
        Ok(Seat {
            port: self,
            inbox,
            own,
        })
    }

    /// Adds the payloads of received packets for `own` to a batch, while it has room. The
    /// packets of others go to their inboxes. Does nothing if another thread is receiving.
    #[inline]
    pub(crate) fn receive(&self, own: &Home, seen: &mut Seen, batch: &mut Received) -> Looked {
        self.receive_from(&self.receiving, own, seen, batch)
    }

    /// Like [`Self::receive`], from an endpoint's own queue. Not inlined, so that the path of
    /// endpoints that share a queue, the common case, stays short.
    #[inline(never)]
    pub(crate) fn receive_own(
        &self,
        queue: &Own,
        own: &Home,
        seen: &mut Seen,
        batch: &mut Received,
    ) -> Looked {
        self.receive_from(queue.poll(), own, seen, batch)
    }

    /// Like [`Self::receive`], from this queue.
    #[inline]
    fn receive_from(
        &self,
        queue: &Mutex<RxQueue>,
        own: &Home,
        seen: &mut Seen,
        batch: &mut Received,
    ) -> Looked {
        let mut rx = match queue.try_lock() {
            Ok(rx) => rx,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Looked::default(),
        };
        let packets = rx.receive(batch, BATCH);
        if let Some(place) = seen.place() {
            batch.show_alike(place, |bytes| seen.payload(bytes).is_some());
        }
        let mut corrupt = 0;
        batch.sift(
            |bytes| match seen.again(bytes) {
                Some(found) => Ok(found),
                None => {
                    let payload = payload_of(seen.parse(bytes, own)?)?;
                    Ok((&bytes[payload.range()], payload.congestion))
                }
            },
            |packet, why| corrupt += u64::from(self.on_other(packet, why)),
        );
        Looked { packets, corrupt }
    }

    /// Receives for the inboxes alone, from all queues.
    pub(crate) fn look_for_all(&self) {
        for queue in std::iter::once(&self.receiving).chain(self.rules.all()) {
            self.look_at(queue);
        }
    }

    /// Receives for the inboxes alone, until the queue has no more packets, or for a few bursts.
    /// True if there were any.
    fn look_at(&self, queue: &Mutex<RxQueue>) -> bool {
        let (mut batch, mut seen) = (Received::default(), Seen::default());
        for burst in 0..MOST_BURSTS {
            let looked = self.receive_from(queue, &self.home, &mut seen, &mut batch);
            // No endpoint has port 0.
            self.pool.free(&mut batch);
            if looked.packets < BATCH {
                return burst > 0 || looked.packets > 0;
            }
        }
        true
    }

    /// Notes that an endpoint receives, so that the keeper need not.
    #[inline]
    pub(crate) fn on_poll(&self) {
        if !self.is_polled.load(Ordering::Relaxed) {
            self.is_polled.store(true, Ordering::Relaxed);
        }
    }

    /// The descriptor of the device's interrupts; `None` if it has none.
    pub(crate) fn bell(&self) -> Option<RawFd> {
        self.sleepers.fd()
    }

    /// Notes that an endpoint will sleep: the device rings, or the keeper looks soon, unless
    /// another endpoint receives. The caller looks for packets after this.
    pub(crate) fn on_sleep(&self) {
        self.sleepers.on_sleep(self.seats.count());
        self.is_polled.store(false, Ordering::Relaxed);
    }

    /// Notes that an endpoint no longer sleeps. The packet that caused the interrupt may be in the
    /// queue of another endpoint, which still sleeps and which no interrupt wakes now.
    pub(crate) fn on_wake(&self) {
        if self.sleepers.on_wake() && self.rules.has_queues() {
            self.look_for_all();
        }
    }

    /// Sets the time, before the first packet. Called by the keeper.
    pub(crate) fn begin(&self, now_ms: u64) {
        lock(&self.neighbours).begin(now_ms);
    }

    /// Does what is due. True if the device is in use: an endpoint polls it, packets came, or a
    /// neighbour must be asked. Called by the keeper.
    pub(crate) fn on_time(&self, now_ms: u64) -> bool {
        let mut is_used =
            self.is_polled.swap(false, Ordering::Relaxed) || self.look_at(&self.receiving);
        for (queue, was_polled) in self.rules.looks() {
            is_used |= was_polled || self.look_at(queue);
        }
        let due = lock(&self.neighbours).on_time(now_ms);
        if due.changed {
            self.changes.fetch_add(1, Ordering::Release);
        }
        let must_ask = !due.questions.is_empty();
        for (ip, at) in due.questions {
            self.ask(ip, at);
        }
        let lost = due.lost.len() as u64;
        self.tally.on(Event::Unanswered, lost);
        due.lost.into_iter().for_each(|it| self.pool.free_one(it));
        self.fill_reserve();
        let is_up = || lock(&self.sending).is_up();
        if self.link.on_time(now_ms, is_up) {
            self.tally.on(Event::LinkDown, 1);
        }
        is_used || must_ask
    }

    /// Handles a packet that is not for the endpoint that received it. True if it is corrupt.
    #[cold]
    fn on_other(&self, packet: Packet, why: Refused) -> bool {
        let why = match why {
            Refused::Destination => match self.hand_on(packet) {
                Ok(()) => return false,
                Err(why) => why,
            },
            _ => {
                let message = messages::read(packet.bytes(), &self.home);
                self.pool.free_one(packet);
                if let Some(message) = message {
                    self.on_message(message);
                    return false;
                }
                why
            }
        };
        self.tally.on_refused(why);
        // A link also carries packets for others, which are not corrupt.
        !matches!(
            why,
            Refused::Type | Refused::Mac | Refused::Vlan | Refused::Destination
        )
    }

    /// Gives a packet to the endpoint to which it was sent; one that is refused goes back to the
    /// pool.
    fn hand_on(&self, packet: Packet) -> Result<(), Refused> {
        let found = port_of(packet.bytes(), &self.home).and_then(|number| {
            let Some(inbox) = self.seats.find(number) else {
                return Ok(None);
            };
            let payload = payload_of(parse(packet.bytes(), inbox.home())?)?;
            Ok(Some((inbox, payload)))
        });
        match found {
            Ok(Some((inbox, payload))) => {
                inbox.give(Arrived { packet, payload }, &self.pool);
                Ok(())
            }
            Ok(None) => {
                self.drop_unknown(packet);
                Ok(())
            }
            Err(why) => {
                self.pool.free_one(packet);
                Err(why)
            }
        }
    }

    fn drop_unknown(&self, packet: Packet) {
        self.pool.free_one(packet);
        self.tally.on(Event::UnknownPort, 1);
    }

    /// Sends one complete packet. Returns the number of packets that the device did not take.
    fn send_one(&self, packet: Packet) -> usize {
        let mut packets = self.pool.tx_packets();
        packets.push(packet);
        self.send_with(&mut packets, None)
    }

    /// Sends the complete packets, with their tails. Returns the number of those that the device
    /// did not take.
    #[inline]
    pub(crate) fn send_with(&self, packets: &mut TxPackets, tails: Option<&Tails>) -> usize {
        lock(&self.sending).send(packets, tails);
        let dropped = packets.len();
        if dropped > 0 {
            self.pool.free_tx_packets(packets, false);
        }
        dropped
    }

    /// Makes the device give back the packets that it has sent.
    pub(crate) fn settle(&self) {
        if self.answers {
            lock(&self.sending).ask();
        }
    }

    /// Fewest data bytes of a packet that the device reads in the msgbuf; `None`: all are copied.
    pub(crate) fn lends_from(&self) -> Option<usize> {
        self.lends.then_some(self.site.lend as usize)
    }

    /// Lets the device read a region of msgbufs, if it can; returns whether it may.
    ///
    /// # Safety
    /// The region's bytes begin at `base`, and it lives during the call.
    pub(crate) unsafe fn share(&self, region: RegionId, base: *const u8) -> bool {
        // SAFETY: as the caller says.
        unsafe { lock(&self.sending).share(region, base) }
    }

    /// Notes that an endpoint has gone before the device gave all of its packets back.
    pub(crate) fn on_owed(&self) {
        lock(&self.sending).on_owed();
    }

    pub(crate) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Adds one use of a neighbour, and asks for it if it is new.
    pub(crate) fn use_neighbour(&self, ip: IpAddr) {
        if lock(&self.neighbours).add(ip) {
            self.ask(ip, None);
        }
    }

    /// Takes away one use of a neighbour.
    pub(crate) fn leave_neighbour(&self, ip: IpAddr) {
        lock(&self.neighbours).release(ip);
    }

    /// The number of changes of neighbours' addresses so far.
    #[inline]
    pub(crate) fn changes(&self) -> u32 {
        self.changes.load(Ordering::Acquire)
    }

    /// The Ethernet address of a neighbour.
    pub(crate) fn find(&self, ip: IpAddr) -> Option<Mac> {
        lock(&self.neighbours).find(ip)
    }

    /// Sends a complete packet when its neighbour has answered. False: too many wait; it is lost.
    pub(crate) fn hold(&self, ip: IpAddr, packet: Packet) -> bool {
        let hold = lock(&self.neighbours).hold(ip, packet);
        match hold {
            Hold::Waits => true,
            Hold::Known(mac, packet) => {
                self.send_to(mac, packet);
                true
            }
            Hold::Full(packet) => {
                self.pool.free_one(packet);
                false
            }
        }
    }

    /// Gives a packet to an endpoint of this device. A lost packet is counted as if it had come
    /// over the link.
    pub(crate) fn deliver(&self, number: u16, arrived: Arrived) {
        match self.seats.find(number) {
            Some(inbox) => inbox.give(arrived, &self.pool),
            None => self.drop_unknown(arrived.packet),
        }
    }

    /// Shows the counters of the device.
    pub(crate) fn show_counters(&self, show: &mut dyn FnMut(&'static str, u64)) {
        let drops = lock(&self.receiving).drops();
        for (name, count) in NAMES.into_iter().zip(self.tally.counts(drops)) {
            show(name, count);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
