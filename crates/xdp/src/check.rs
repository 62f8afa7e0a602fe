//! Properties that hold whatever the kernel writes into the four rings of a queue: bad entries,
//! addresses outside of the region, lengths beyond a frame, positions that jump. The property tests
//! here and the fuzz target `xdp_rings` share them.
//!
//! Two endpoints of a queue do their work, and in between a kernel in user space does its own,
//! honestly or not. After each step, every frame for receiving belongs to the kernel or to one
//! endpoint; the bytes that an endpoint shows lie in one such frame; the pieces that it sends lie
//! in its own frames, and are whole datagrams as long as the kernel was honest; a broken ring stays
//! broken.
//!
//! Built with the feature `check`, which tests have.

mod played;

use dunlin_core::transport::{Lane, PeerId, RX_BURST};
use dunlin_msgbuf::{Pool, PoolConfig};

use crate::receive::arrivals::{NextPacket, WHOLE};
use crate::ring::{Desc, Memory, RingEntry};
use crate::transmit::frames::Frames;
use crate::umem::FRAME;
use played::{Queue, SIDES};

/// The most steps of a program that are run, so that a long program ends.
const MOST_STEPS: usize = 2000;

/// Longest piece that the kernel receives.
const PIECE: usize = 3840;

/// Longest packet of a datagram with several parts: too long for one datagram.
const LONG: usize = 20_000;

/// Packets of the lane.
const STAGED: usize = 40;

thread_local! {
    static LANE: Lane = lane();
}

/// A lane with packets of two lengths to one peer.
fn lane() -> Lane {
    let mut pool = Pool::new(PoolConfig::default()).expect("memory for a pool");
    let mut lane = Lane::new(usize::MAX);
    for number in 0..STAGED {
        let len = if number % 8 == 7 { 5 } else { 32 };
        let message = pool.alloc(len).expect("memory for a message");
        assert!(lane.push(PeerId(7), [1, 2, 3], &message));
    }
    lane
}

/// Runs the bytes as a program of steps.
///
/// # Panics
/// If a property does not hold.
pub fn rings(program: &[u8]) {
    let mut queue = Queue::new();
    let mut rest = Program(program);
    queue.check();
    for _ in 0..MOST_STEPS {
        let Some(step) = rest.byte() else {
            break;
        };
        let number = usize::from(step >> 7) % SIDES;
        match step % 16 {
            0..=2 => receive(&mut queue, number, rest.size(1) % (RX_BURST + 1)),
            3..=6 => send(&mut queue, number, step % 16, &mut rest),
            7 => kick(&mut queue, number, rest.byte().unwrap_or(0)),
            8 => deliver(&queue, number, &mut rest),
            9 => {
                let how = rest.word(1);
                queue.complete(number, how & 63, how & 64 != 0);
            }
            10 => lie_about_packet(&queue, number, &mut rest),
            11 => lie_about_completion(&mut queue, &mut rest),
            12 => jump(&mut queue, number, &mut rest),
            13 => scribble(&mut queue, number, &mut rest),
            14 => queue.replace(number, rest.word(1), rest.number(8)),
            _ => {
                let word = rest.number(8).to_le_bytes();
                queue.scribble(rest.number(1), &word);
            }
        }
        queue.check();
    }
}

/// Takes a burst as `XdpRx` does: the frames of the last burst go back first, and the burst ends
/// once `most` packets or more are shown. `show_while` stops at a packet that begins with an odd
/// byte; such a packet is shown by `show`, or by `show_nothing` if it has several pieces.
fn receive(queue: &mut Queue, number: usize, most: usize) {
    let arrivals = &mut queue.sides[number].arrivals;
    arrivals.give_back();
    let mut room = vec![0; WHOLE];
    loop {
        let shown = arrivals.show_while(|frame| {
            let is_shown = frame.first().is_some_and(|byte| byte % 2 == 0);
            is_shown.then(|| &frame[frame.len() / 3..])
        });
        if shown >= most || shown == RX_BURST {
            break;
        }
        match arrivals.next(&mut room) {
            Some(NextPacket::Piece(piece)) => {
                let len = arrivals.bytes(piece).len();
                assert!(len <= FRAME);
                arrivals.show(piece.part(len / 2, len));
            }
            Some(NextPacket::Whole(len)) => {
                assert!(len <= WHOLE);
                arrivals.show_nothing();
            }
            None => break,
        }
    }
    arrivals.set_plain(most);
    for index in 0..RX_BURST {
        let plain = arrivals.plain_bytes(index);
        assert!(plain.is_none() || plain == arrivals.shown_bytes(index));
    }
}

/// Sends packets: a single one, the lane's, or a datagram of several parts.
fn send(queue: &mut Queue, number: usize, how: u8, rest: &mut Program<'_>) {
    let header = queue.header;
    let frames = queue.sides[number].frames.as_mut().expect("it is there");
    let count = rest.size(1);
    match how {
        3 => {
            let payload = [0x5A; 64];
            let len = 1 + count % payload.len();
            let stamp = header.stamp(len);
            // False without a free frame, which is no fault.
            (0..=count / 8).for_each(|_| _ = frames.send(&stamp, &payload[..len]));
        }
        4 => LANE.with(|lane| {
            let first = count % STAGED;
            let packets = &lane.packets()[first..];
            let stamp = header.stamp(packets[0].size());
            let sent = frames.send_alike(&stamp, lane, packets[0], packets);
            assert!(sent <= packets.len());
        }),
        _ => {
            let Some(mut open) = frames.open(&header) else {
                return;
            };
            let bytes = vec![0xA5; LONG];
            for _ in 0..=count % 4 {
                let len = rest.size(2) % LONG;
                let (inline, data) = bytes[..len].split_at(len.min(24));
                if !frames.append(&mut open, inline, data) {
                    return frames.discard();
                }
            }
            match how == 6 || open.payload() == 0 {
                true => frames.discard(),
                // False without a place, which is no fault either.
                false => _ = frames.close(&open, &header.stamp(open.payload())),
            }
        }
    }
}

fn kick(queue: &mut Queue, number: usize, answer: u8) {
    let side = &mut queue.sides[number];
    side.device.answer(answer);
    // A kick also reports whether the interface is down, which does not matter here.
    let _ = side.frames.as_mut().map(Frames::kick);
    side.device.answer(0);
}

/// A packet for an endpoint, or one with any bytes, in one piece or several.
fn deliver(queue: &Queue, number: usize, rest: &mut Program<'_>) {
    let (how, len) = (rest.byte().unwrap_or(0), rest.size(2));
    let payload = vec![how; 1 + len % 9000];
    let packet = match how % 2 {
        0 => queue.frame(&payload[..payload.len().min(1400)]),
        _ => payload,
    };
    let piece = if how & 2 == 0 {
        PIECE
    } else {
        200 + len % PIECE
    };
    queue.deliver(number, &packet, piece.min(PIECE));
}

/// Puts any entry into a receive ring.
fn lie_about_packet(queue: &Queue, number: usize, rest: &mut Program<'_>) {
    let rx = &queue.sides[number].rx;
    let desc = rest.desc();
    let at = rx.produced();
    rx.put(at, desc);
    rx.produce(at.wrapping_add(1));
}

/// Puts any entry into the completion ring.
fn lie_about_completion(queue: &mut Queue, rest: &mut Program<'_>) {
    queue.on_lie();
    let addr = rest.desc().addr;
    let at = queue.completion.produced();
    queue.completion.put(at, addr);
    queue.completion.produce(at.wrapping_add(1));
}

/// Moves one of the kernel's positions.
fn jump(queue: &mut Queue, number: usize, rest: &mut Program<'_>) {
    queue.on_lie();
    let how = rest.number(1);
    let by = match how & 4 {
        0 => rest.word(1) & 127,
        _ => rest.word(4),
    };
    let by = if how & 8 == 0 { by } else { by.wrapping_neg() };
    let side = &queue.sides[number];
    match how % 4 {
        0 => queue.fill.consume(queue.fill.consumed().wrapping_add(by)),
        1 => {
            let to = queue.completion.produced().wrapping_add(by);
            queue.completion.produce(to);
        }
        2 => side.rx.produce(side.rx.produced().wrapping_add(by)),
        _ => side.tx.consume(side.tx.consumed().wrapping_add(by)),
    }
}

/// Writes any entry to any place of a ring, or any flags. Entries of the transmit ring are left
/// alone, because the endpoint reads them only when it ends.
fn scribble(queue: &mut Queue, number: usize, rest: &mut Program<'_>) {
    queue.on_lie();
    let (how, at) = (rest.number(1), rest.word(1));
    let desc = rest.desc();
    let side = &queue.sides[number];
    match how % 4 {
        0 => put(&queue.fill, at, desc.addr),
        1 => put(&queue.completion, at, desc.addr),
        2 => put(&side.rx, at, desc),
        _ => {
            queue.fill.set_flags(at);
            side.tx.set_flags(desc.len);
        }
    }
}

fn put<E: RingEntry>(ring: &Memory<E>, at: u32, entry: E) {
    ring.put(at % ring.capacity(), entry);
}

/// The rest of a program. Beyond its end there are zeros.
struct Program<'a>(&'a [u8]);

impl Program<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self, bytes: u32) -> u64 {
        (0..bytes).fold(0, |number, _| {
            number << 8 | u64::from(self.byte().unwrap_or(0))
        })
    }

    /// A number of up to four bytes.
    fn word(&mut self, bytes: u32) -> u32 {
        u32::try_from(self.number(bytes)).expect("at most four bytes")
    }

    fn size(&mut self, bytes: u32) -> usize {
        self.word(bytes) as usize
    }

    /// An entry near a frame, or an arbitrary one.
    fn desc(&mut self) -> Desc {
        let how = self.number(1);
        let addr = match how & 1 {
            0 => self.number(1) * FRAME as u64 + self.number(1) * 16,
            _ => self.number(8),
        };
        let len = match how & 2 {
            0 => self.word(2),
            _ => self.word(4),
        };
        let options = match how & 12 {
            0 | 4 => 0,
            8 => Desc::CONTINUES,
            _ => self.word(4),
        };
        Desc { addr, len, options }
    }
}

#[cfg(test)]
mod tests;
