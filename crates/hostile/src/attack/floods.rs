//! Floods of the control port: connections that say nothing, half a message, nonsense or Hello;
//! questions without end from peers that read the answers, and from peers that do not.

use std::collections::VecDeque;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use dunlin_core::Rng;
use dunlin_testkit::stranger::{Flood, frame, greeted, heartbeat, hello, insight_read, lookup};
use harness::process::{Parent, Role};
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::Pace;
use crate::words::{Deeds, Orders};

pub(crate) const ROLE: Role = Role::new("floods", run);

/// Connections a second: 10⁶ in the time that a run of two hours attacks.
const RATE: u32 = 250;
/// Connections that stay open, the newest.
const OPEN: usize = 150;
/// Peers that ask and read, for each question.
const ASKERS: usize = 12;
/// Bytes of questions of one asker in a millisecond.
const ASKED: usize = 192;
/// Peers that ask and do not read.
const DEAF: usize = 4;
/// Bytes of their receive buffers.
const SMALL: usize = 4 << 10;
/// Longest life of a connection: the server closes connections that acknowledge no heartbeat, and
/// the flood makes them anew.
const LIFE: Duration = Duration::from_secs(1);

fn run(parent: &Parent) -> anyhow::Result<()> {
    let Orders { target, seed, span } = parent.receive()?;
    let mut rng = Rng::new(seed);
    let mut open = VecDeque::with_capacity(OPEN + 1);
    let (mut deeds, mut pace) = (Deeds::default(), Pace::begin(span, RATE));
    let mut askers = Vec::new();
    let mut made = None;
    while let Some(part) = pace.next() {
        if made.is_none_or(|at: Instant| at.elapsed() > LIFE) {
            askers = floods(target.address, &mut deeds);
            made = Some(Instant::now());
        }
        for _ in 0..part {
            deeds.connections += 1;
            open.extend(stranger(target.address, &mut rng));
            if open.len() > OPEN {
                open.pop_front();
            }
        }
        for (flood, reads) in &mut askers {
            deeds.message_bytes += flood.turn(*reads, ASKED) as u64;
        }
    }
    parent.say(&deeds)
}

/// Peers that ask; `true`: they read the answers.
fn floods(address: SocketAddr, deeds: &mut Deeds) -> Vec<(Flood, bool)> {
    let mut connect = |count: usize| -> Vec<TcpStream> {
        deeds.connections += count as u64;
        let greet = |_| greeted(address).ok();
        (0..count).filter_map(greet).collect()
    };
    let mut floods = Vec::new();
    for question in [heartbeat(), lookup(), insight_read()] {
        floods.push((Flood::new(connect(ASKERS), &question), true));
        let deaf = connect(DEAF);
        for stream in &deaf {
            // If the buffer stays large, the peer is only less deaf.
            let _ = set_socket_recv_buffer_size(stream, SMALL);
        }
        floods.push((Flood::new(deaf, &question), false));
    }
    floods
}

/// A connection that sends something. `None`: it is closed at once, or could not be made.
fn stranger(address: SocketAddr, rng: &mut Rng) -> Option<TcpStream> {
    let mut stream = TcpStream::connect(address).ok()?;
    let whole = frame(&hello(1));
    let cut = rng.next_u32() as usize % whole.len();
    // The server may have closed it by then.
    let _ = match rng.next_u32() % 6 {
        0 => return None,
        1 => Ok(()),
        2 => stream.write_all(&whole),
        3 => stream.write_all(&whole[..cut]),
        4 => stream.write_all(&[&whole[..], &heartbeat()[..7]].concat()),
        _ => {
            let words = (0..cut).flat_map(|_| rng.next_u64().to_le_bytes());
            stream.write_all(&words.collect::<Vec<u8>>())
        }
    };
    Some(stream)
}
