//! UDP sockets and nothing else: a datagram for each request, one for its response, a system call
//! for each of them. The sender splits a message that exceeds a datagram, and the receiver
//! reassembles it. There are no acknowledgements; if no datagram arrives for a while, the client
//! sends all requests in flight again and counts them as lost. A socket must have room for all
//! large messages in flight, so their number is small.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, UdpSocket};
use std::time::Duration;

use anyhow::{Context, ensure};
use rustix::net::sockopt::socket_recv_buffer_size;

use super::{Peer, roomy};
use crate::load::Load;
use crate::work;

/// Bytes of a message in one datagram, which has 65507 at most.
const PART: usize = 32 << 10;

/// The header of each part: the slot of the call in the client, the number of the call, the offset
/// of the part, and the length of the message; four bytes each.
const HEAD: usize = 16;

/// The most slots of a client.
const SLOTS: usize = 1024;

/// Silence after which the requests in flight count as lost.
const SILENCE: Duration = Duration::from_millis(200);

/// UDP sockets.
pub(crate) struct Udp;

impl Peer for Udp {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let socket = roomy(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)?;
        ready(&socket.local_addr()?.to_string())?;
        let mut frame = vec![0; HEAD + PART];
        let mut slots = Slots::default();
        let mut response = Vec::new();
        loop {
            let (len, client) = socket.recv_from(&mut frame)?;
            let Some((head, request)) = slots.add(&frame[..len]) else {
                continue;
            };
            response.resize(request.len(), 0);
            work::answer(request, &mut response);
            for part in parts(head, &response) {
                socket.send_to(fill(&mut frame, part), client)?;
            }
        }
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        let socket = roomy(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?)?;
        socket.connect(address)?;
        socket.set_read_timeout(Some(SILENCE))?;
        let mut client = Client {
            socket,
            frame: vec![0; HEAD + PART],
            calls: Vec::new(),
            slots: Slots::default(),
        };
        client.run(load)
    }

    fn inflight(&self, size: usize, wanted: usize) -> usize {
        wanted.min(room() / (2 * size)).max(1)
    }
}

/// Bytes that a socket's buffer holds here. The kernel charges up to twice the size of a datagram.
fn room() -> usize {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(roomy);
    let room = socket.and_then(|socket| Ok(socket_recv_buffer_size(socket)?));
    // If the kernel does not answer, only one call is in flight.
    room.unwrap_or_default()
}

/// The fields of the header of each part.
#[derive(Clone, Copy)]
struct Head {
    slot: u32,
    call: u32,
    begin: u32,
    len: u32,
}

/// Messages that are being put together, by slot.
#[derive(Default)]
struct Slots(Vec<Slot>);

#[derive(Default)]
struct Slot {
    call: u32,
    bytes: Vec<u8>,
    /// Bytes of the message that have arrived.
    came: usize,
}

/// A client with its calls, by slot: number and request.
struct Client {
    socket: UdpSocket,
    frame: Vec<u8>,
    calls: Vec<(u64, Vec<u8>)>,
    slots: Slots,
}

impl Client {
    fn run(&mut self, load: &mut Load) -> anyhow::Result<()> {
        let inflight = load.inflight();
        ensure!(inflight <= SLOTS, "{inflight} calls are more than {SLOTS}");
        for slot in 0..inflight {
            let mut request = vec![0; load.size()];
            let number = load
                .next(&mut request)
                .context("there are no calls at all")?;
            self.calls.push((number, request));
            self.send(slot)?;
        }
        while load.report().is_none() {
            let len = match self.socket.recv(&mut self.frame) {
                Ok(len) => len,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    load.lose(inflight as u64);
                    (0..inflight).try_for_each(|slot| self.send(slot))?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let Some((head, response)) = self.slots.add(&self.frame[..len]) else {
                continue;
            };
            let slot = head.slot as usize;
            let Some((number, request)) = self.calls.get_mut(slot) else {
                continue;
            };
            // A request that was sent twice may be answered twice, so this answer may be an old
            // one.
            if head.call != low(*number) {
                continue;
            }
            load.end(*number, response)?;
            if let Some(next) = load.next(request) {
                *number = next;
                self.send(slot)?;
            }
        }
        Ok(())
    }

    /// Sends the request of a slot, for the first time or again.
    fn send(&mut self, slot: usize) -> anyhow::Result<()> {
        let (number, request) = &self.calls[slot];
        let head = Head {
            slot: u32::try_from(slot)?,
            call: low(*number),
            begin: 0,
            len: 0,
        };
        for part in parts(head, request) {
            self.socket.send(fill(&mut self.frame, part))?;
        }
        Ok(())
    }
}

impl Slots {
    /// Takes a datagram; returns the message if it is complete now.
    fn add(&mut self, datagram: &[u8]) -> Option<(Head, &[u8])> {
        let (head, part) = datagram.split_first_chunk::<HEAD>()?;
        let (words, _) = head.as_chunks();
        let [slot, call, begin, len] = [0, 1, 2, 3].map(|at| u32::from_le_bytes(words[at]));
        let head = Head {
            slot,
            call,
            begin,
            len,
        };
        let (index, begin) = (slot as usize, begin as usize);
        if index >= SLOTS || begin + part.len() > len as usize || len as usize > super::LARGEST {
            return None;
        }
        if self.0.len() <= index {
            self.0.resize_with(index + 1, Slot::default);
        }
        let slot = &mut self.0[index];
        if slot.call != call || slot.bytes.len() != len as usize || begin == 0 {
            (slot.call, slot.came) = (call, 0);
            slot.bytes.resize(len as usize, 0);
        }
        slot.bytes[begin..begin + part.len()].copy_from_slice(part);
        slot.came += part.len();
        (slot.came == slot.bytes.len()).then_some((head, &slot.bytes))
    }
}

/// The parts of a message.
fn parts(head: Head, message: &[u8]) -> impl Iterator<Item = (Head, &[u8])> {
    let len = u32::try_from(message.len()).expect("messages are small");
    let part = move |(part, begin)| (Head { begin, len, ..head }, part);
    message.chunks(PART).zip((0..).step_by(PART)).map(part)
}

/// Writes a part into a datagram.
fn fill<'a>(frame: &'a mut [u8], (head, part): (Head, &[u8])) -> &'a [u8] {
    let words = [head.slot, head.call, head.begin, head.len];
    for (place, word) in frame.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    frame[HEAD..HEAD + part.len()].copy_from_slice(part);
    &frame[..HEAD + part.len()]
}

/// The low bits of a call's number, which a datagram carries.
fn low(number: u64) -> u32 {
    u32::try_from(number & u64::from(u32::MAX)).expect("it was cut")
}
