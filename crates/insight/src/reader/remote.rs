//! Reads the counters of a process on any host: its file, part by part, over the control plane
//! (rule C10).
//!
//! All calls block until an answer or a timeout. A connection serves one reading, which is too
//! short for heartbeats.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;

use dunlin_wire::VERSION;
use dunlin_wire::control::{
    BootId, Features, GoodbyeReason, Hello, Incarnation, InsightRead, MAX_FRAME, MAX_INSIGHT,
    Message, frame_len,
};

use super::source::Source;

/// Timeout of each step.
const PATIENCE: Duration = Duration::from_secs(3);

/// A connection to the nexus of a process.
#[derive(Debug)]
pub struct Remote {
    stream: TcpStream,
    /// Received bytes that do not form a whole message yet.
    input: Vec<u8>,
}

impl Remote {
    /// Connects to the nexus at an address.
    ///
    /// # Errors
    /// No process listens there, or the process that does speaks another protocol.
    pub fn connect(address: &str) -> io::Result<Self> {
        let mut refused = io::Error::from(io::ErrorKind::NotFound);
        for address in address.to_socket_addrs()? {
            match Self::greet(address) {
                Ok(remote) => return Ok(remote),
                Err(error) => refused = error,
            }
        }
        Err(refused)
    }

    fn greet(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        let mut remote = Self {
            stream,
            input: Vec::new(),
        };
        // This Hello names no host and no port, so that no peer connects back.
        remote.send(&Message::Hello(Hello {
            min_version: VERSION,
            max_version: VERSION,
            features: Features::default(),
            boot_id: BootId(random_bytes()?),
            incarnation: Incarnation(u64::from_le_bytes(random_bytes()?)),
            port: 0,
            unix_name: "",
        }))?;
        remote.receive(|message| matches!(message, Message::HelloAck(_)).then_some(()))?;
        Ok(remote)
    }

    fn send(&mut self, message: &Message<'_>) -> io::Result<()> {
        let mut frame = [0; MAX_FRAME];
        let len = message.encode(&mut frame).map_err(io::Error::other)?;
        self.stream.write_all(&frame[..len])
    }

    /// Returns the first result of `take`. Ignores other messages, except Goodbye.
    fn receive<R>(&mut self, mut take: impl FnMut(&Message<'_>) -> Option<R>) -> io::Result<R> {
        loop {
            while let Some(len) = frame_len(&self.input).map_err(not_ours)? {
                let message = Message::decode(&self.input[..len]).map_err(not_ours)?;
                if let Message::Goodbye { reason } = message {
                    return Err(closed(reason));
                }
                let taken = take(&message);
                self.input.drain(..len);
                if let Some(taken) = taken {
                    return Ok(taken);
                }
            }
            let mut chunk = [0; 16 << 10];
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
                Ok(len) => self.input.extend_from_slice(&chunk[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The read has timed out.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Err(io::ErrorKind::TimedOut.into());
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Source for Remote {
    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let mut at = offset;
        for part in out.chunks(MAX_INSIGHT) {
            let len = u16::try_from(part.len()).map_err(io::Error::other)?;
            self.send(&Message::InsightRead(InsightRead { offset: at, len }))?;
            at += u64::from(len);
        }
        let mut at = offset;
        for part in out.chunks_mut(MAX_INSIGHT) {
            let len = self.receive(|message| match message {
                Message::Insight(insight) if insight.offset == at => {
                    let len = insight.bytes.len().min(part.len());
                    part[..len].copy_from_slice(&insight.bytes[..len]);
                    Some(len)
                }
                _ => None,
            })?;
            if len < part.len() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            at += len as u64;
        }
        Ok(())
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // The connection ends whether or not this arrives.
        let _ = self.send(&Message::Goodbye {
            reason: GoodbyeReason::Shutdown,
        });
    }
}

fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn not_ours(error: impl std::error::Error) -> io::Error {
    let what = format!("the peer is not a Dunlin nexus: {error}");
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn closed(reason: GoodbyeReason) -> io::Error {
    let why = match reason {
        GoodbyeReason::BadMessage => "its release does not know this request",
        GoodbyeReason::Version => "it speaks another version",
        GoodbyeReason::TooManyConnections => "it has too many connections",
        _ => "it closed the connection",
    };
    io::Error::new(io::ErrorKind::ConnectionAborted, why)
}

#[cfg(test)]
mod tests;
