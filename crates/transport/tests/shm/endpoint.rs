//! An endpoint on shared memory and packets that can be checked.

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use dunlin_core::transport::{Halves, MAX_INLINE, PeerId, Rx, Tx, TxItem};
use dunlin_msgbuf::{BufRef, Pool, PoolConfig};
use dunlin_transport::connect::{
    Arm, Connect, ConnectError, EndpointUid, Offer, PeerInfo, Pending,
};
use dunlin_transport::counters::Counters;
use dunlin_transport::shm::{Options, Shm, ShmRx, ShmTx};

/// Long enough for anything that is not lost, however busy the machine is.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// Longest data of a packet that [`End::send`] makes.
const LONG: u64 = 2000;

pub(crate) struct End {
    pub(crate) rx: ShmRx,
    pub(crate) tx: ShmTx,
    pub(crate) pool: Pool,
    uid: u8,
}

impl End {
    pub(crate) fn new(uid: u8) -> Self {
        Self::with(uid, Options::default())
    }

    pub(crate) fn with(uid: u8, options: Options) -> Self {
        let Halves { rx, tx, .. } = Shm::open(options).unwrap();
        let pool = Pool::new(PoolConfig::default()).unwrap();
        Self { rx, tx, pool, uid }
    }

    pub(crate) fn info(&self) -> PeerInfo {
        info(self.uid)
    }

    pub(crate) fn offer(&mut self, to: &PeerInfo) -> Result<(Pending, Offer), ConnectError> {
        Shm::offer(&mut self.rx, &mut self.tx, to)
    }

    pub(crate) fn accept(
        &mut self,
        from: &PeerInfo,
        offer: Offer,
    ) -> Result<(PeerId, Offer), ConnectError> {
        Shm::accept(&mut self.rx, &mut self.tx, from, offer)
    }

    pub(crate) fn complete(
        &mut self,
        pending: Pending,
        answer: Offer,
    ) -> Result<PeerId, ConnectError> {
        Shm::complete(&mut self.rx, &mut self.tx, pending, answer)
    }

    pub(crate) fn abandon(&mut self, pending: Pending) {
        Shm::abandon(&mut self.rx, &mut self.tx, pending);
    }

    pub(crate) fn connect(&mut self, other: &mut Self) -> (PeerId, PeerId) {
        let (pending, offer) = self.offer(&other.info()).unwrap();
        let (to_us, answer) = other.accept(&self.info(), offer).unwrap();
        (self.complete(pending, answer).unwrap(), to_us)
    }

    pub(crate) fn release(&mut self, peer: PeerId) {
        Shm::release(&mut self.rx, &mut self.tx, peer);
    }

    pub(crate) fn remove(&mut self, peer: PeerId) {
        Shm::remove(&mut self.rx, &mut self.tx, peer);
    }

    pub(crate) fn counters(&self) -> Counters {
        Shm::counters(&self.rx, &self.tx)
    }

    /// Sends packet `number`; true if there was room for it.
    pub(crate) fn send(&mut self, peer: PeerId, number: u64) -> bool {
        let mut inline = [0; MAX_INLINE];
        inline[..8].copy_from_slice(&number.to_le_bytes());
        let len = usize::try_from(data_len(number)).unwrap();
        let mut buf = self.pool.alloc(len).unwrap();
        buf.data_mut().fill(filling(number));
        let data = if len == 0 { BufRef::EMPTY } else { buf.lend() };
        let sent = self.tx.counters().tx_packets;
        self.tx.burst(&[TxItem {
            peer,
            inline_len: 24,
            inline,
            data,
        }]);
        self.pool.recycle(buf);
        self.tx.counters().tx_packets > sent
    }

    /// Sends a packet without data, and uses no msgbuf; true if there was room for it.
    pub(crate) fn send_bare(&mut self, peer: PeerId) -> bool {
        let sent = self.tx.counters().tx_packets;
        self.tx.burst(&[TxItem {
            peer,
            inline_len: 24,
            inline: [0; MAX_INLINE],
            data: BufRef::EMPTY,
        }]);
        self.tx.counters().tx_packets > sent
    }

    /// The numbers of the packets that a burst shows; panics if one is not what was sent.
    pub(crate) fn poll(&mut self) -> Vec<u64> {
        (0..self.rx.burst())
            .map(|index| check(self.rx.frame(index).bytes))
            .collect()
    }

    /// Wakes a receiver that went to sleep while we sent.
    pub(crate) fn settle(&mut self) {
        self.tx.settle();
    }

    /// Polls until something comes. First it wakes receivers that went to sleep while we sent, as
    /// an endpoint does when it has nothing more to send.
    pub(crate) fn receive(&mut self) -> Vec<u64> {
        self.tx.settle();
        let start = Instant::now();
        loop {
            let numbers = self.poll();
            if !numbers.is_empty() {
                return numbers;
            }
            assert!(start.elapsed() < SOON, "nothing comes");
        }
    }

    /// Sleeps until something may have come; false if nothing woke us in time.
    pub(crate) fn sleep(&mut self, at_most: Duration) -> bool {
        self.tx.settle();
        let mut fds: Vec<RawFd> = Vec::new();
        Shm::fds(&self.rx, &self.tx, &mut fds);
        let woken = Shm::arm(&mut self.rx, &mut self.tx) == Arm::Ready || wait(fds[0], at_most);
        Shm::disarm(&mut self.rx, &mut self.tx);
        woken
    }
}

pub(crate) fn info(uid: u8) -> PeerInfo {
    PeerInfo::of_this_host(EndpointUid([uid; 16]))
}

fn wait(fd: RawFd, at_most: Duration) -> bool {
    let mut polled = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let millis = i32::try_from(at_most.as_millis()).unwrap();
    // SAFETY: the structure outlives the call.
    unsafe { libc::poll(&raw mut polled, 1, millis) > 0 }
}

/// How many data bytes packet `number` has: every third is long.
fn data_len(number: u64) -> u64 {
    number % if number.is_multiple_of(3) { LONG } else { 33 }
}

fn check(frame: &[u8]) -> u64 {
    let number = u64::from_le_bytes(*frame.first_chunk().unwrap());
    let len = data_len(number);
    assert_eq!(frame.len() as u64, 24 + len, "packet {number}");
    assert!(
        frame[24..].iter().all(|byte| *byte == filling(number)),
        "packet {number}"
    );
    number
}

fn filling(number: u64) -> u8 {
    (number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}
