//! Floods of the control port: connections that send nothing, half a message, nonsense or a Hello;
//! endless questions from peers that read the answers, and from peers that do not.
//!
//! Invariant: no call here waits for the server, so a server that is slow does not slow the flood.

use std::collections::VecDeque;
use std::io::{ErrorKind, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::time::{Duration, Instant};

use dunlin_core::Rng;
use dunlin_testkit::stranger::{Flood, frame, greeted, heartbeat, hello, insight_read, lookup};
use harness::process::{Parent, Role};
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

use super::Pace;
use crate::words::{Deeds, Orders};

pub(crate) const ROLE: Role = Role::new("floods", run);

/// Number of connections that stay open: the newest.
const OPEN: usize = 150;
/// Number of peers, for each question, that ask it and read the answers.
const ASKERS: usize = 12;
/// Bytes of questions that one such peer sends in a millisecond.
const ASKED: usize = 192;
/// Number of peers, for each question, that ask it and do not read the answers.
const DEAF: usize = 4;
/// Bytes of the receive buffers of peers that do not read.
const SMALL: usize = 4 << 10;
/// Longest life of the connections of peers that ask. The server closes connections that
/// acknowledge no heartbeat, so the flood replaces these.
const LIFE: Duration = Duration::from_secs(1);

fn run(parent: &Parent) -> anyhow::Result<()> {
    let orders: Orders = parent.receive()?;
    let address = orders.target.address;
    let mut rng = Rng::new(orders.seed);
    let mut open = VecDeque::with_capacity(OPEN + 1);
    let mut deeds = Deeds::default();
    let mut pace = Pace::begin(orders.span, orders.rates.connections);
    let mut askers = Vec::new();
    let mut made = None;
    while let Some(part) = pace.next() {
        if made.is_none_or(|at: Instant| at.elapsed() > LIFE) {
            askers = floods(address, &mut deeds);
            made = Some(Instant::now());
        }
        for _ in 0..part {
            if let Ok(stream) = stranger(address, &mut rng) {
                deeds.connections += 1;
                open.push_back(stream);
            }
            if open.len() > OPEN {
                let answered = open.pop_front().is_some_and(|old| is_answered(&old));
                deeds.answered += u64::from(answered);
            }
        }
        for (flood, reads) in &mut askers {
            deeds.message_bytes += flood.turn(*reads, ASKED) as u64;
        }
    }
    parent.say(&deeds)
}

/// Makes the peers that ask; `true`: they read the answers.
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
            // If the buffer stays large, the peer only takes longer to stop reading.
            let _ = set_socket_recv_buffer_size(stream, SMALL);
        }
        floods.push((Flood::new(deaf, &question), false));
    }
    floods
}

/// Makes a connection, and sends nothing, nonsense, a Hello or a part of one.
fn stranger(address: SocketAddr, rng: &mut Rng) -> std::io::Result<TcpStream> {
    let mut stream = connected(address, rng)?;
    let whole = frame(&hello(1));
    let cut = rng.next_u32() as usize % whole.len();
    // The server may have closed it by then.
    let _ = match rng.next_u32() % 8 {
        0 => Ok(()),
        1 => stream.write_all(&whole[..cut]),
        2 => stream.write_all(&[&whole[..], &heartbeat()[..7]].concat()),
        3 => {
            let words = (0..cut).flat_map(|_| rng.next_u64().to_le_bytes());
            stream.write_all(&words.collect::<Vec<u8>>())
        }
        _ => stream.write_all(&whole),
    };
    Ok(stream)
}

/// Makes a connection from a random address of the loopback network. Each address has its own
/// ports, so ports do not run out. Dropping the connection resets it, which frees its port
/// immediately.
fn connected(address: SocketAddr, rng: &mut Rng) -> std::io::Result<TcpStream> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    set_socket_linger(&socket, Some(Duration::ZERO))?;
    let [a, b, c, _] = rng.next_u32().to_le_bytes();
    let source = Ipv4Addr::new(127, a, b, c.clamp(1, 254));
    bind(&socket, &SocketAddrV4::new(source, 0))?;
    match connect(&socket, &address) {
        Ok(()) | Err(rustix::io::Errno::INPROGRESS) => Ok(socket.into()),
        Err(error) => Err(error.into()),
    }
}

/// Whether the server has sent anything or has closed the connection.
fn is_answered(stream: &TcpStream) -> bool {
    let mut byte = [0];
    match stream.peek(&mut byte) {
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

#[cfg(test)]
mod tests;
