//! A byte stream, TCP or a UNIX socket, with a length before each message: the usual program
//! without a library. System calls block; one call writes all requests that are ready, one reads
//! all bytes that have arrived. The client never waits to write while responses wait to be read, so
//! that two full sockets cannot block each other.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use anyhow::ensure;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::{LARGEST, Peer, roomy};
use crate::load::Load;
use crate::work;

/// Bytes of the length before a message.
const PREFIX: usize = 4;

/// Bytes that one system call may read.
const ROOM: usize = 16 * (LARGEST + PREFIX);

/// TCP over the loopback interface.
pub(crate) struct Tcp;

/// A UNIX socket.
pub(crate) struct Unix;

impl Peer for Tcp {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        ready(&listener.local_addr()?.to_string())?;
        loop {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            serve_client(stream);
        }
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        call_over(&stream, load)
    }
}

impl Peer for Unix {
    fn serve(&self, ready: &mut dyn FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        // A name without a file; the name ends with this process.
        let name = format!("dunlin-peers-{}", std::process::id());
        let listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        ready(&name)?;
        loop {
            let (stream, _) = listener.accept()?;
            serve_client(roomy(stream)?);
        }
    }

    fn call(&self, address: &str, load: &mut Load) -> anyhow::Result<()> {
        let stream = UnixStream::connect_addr(&SocketAddr::from_abstract_name(address)?)?;
        call_over(&roomy(stream)?, load)
    }
}

/// Received bytes that are not complete messages yet.
struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    fn new() -> Self {
        Self {
            bytes: vec![0; ROOM],
            begin: 0,
            end: 0,
        }
    }

    /// The place for the next bytes.
    fn room(&mut self) -> &mut [u8] {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        } else if self.end > ROOM / 2 {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, self.end - self.begin);
        }
        &mut self.bytes[self.end..]
    }

    fn came(&mut self, count: usize) {
        self.end += count;
    }

    /// The next message, if all of it has arrived.
    fn message(&mut self) -> anyhow::Result<Option<&[u8]>> {
        let Some((prefix, rest)) = self.bytes[self.begin..self.end].split_first_chunk() else {
            return Ok(None);
        };
        let len = u32::from_le_bytes(*prefix) as usize;
        ensure!(len <= LARGEST, "a message of {len} bytes is too long");
        if rest.len() < len {
            return Ok(None);
        }
        let first = self.begin + PREFIX;
        self.begin = first + len;
        Ok(Some(&self.bytes[first..self.begin]))
    }
}

/// Adds a message of `len` bytes that `write` fills.
fn push<R>(output: &mut Vec<u8>, len: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
    let prefix = u32::try_from(len).expect("messages are small");
    output.extend(prefix.to_le_bytes());
    let begin = output.len();
    output.resize(begin + len, 0);
    write(&mut output[begin..])
}

/// Serves a client. Ignores errors of the socket, because a client that has enough closes its
/// socket while answers are on their way.
fn serve_client(stream: impl Read + Write) {
    if let Err(error) = answer_all(stream)
        && !error.is::<std::io::Error>()
    {
        eprintln!("peers: {error:#}");
    }
}

/// Answers until the client closes the connection.
fn answer_all(mut stream: impl Read + Write) -> anyhow::Result<()> {
    let mut input = Input::new();
    let mut output = Vec::new();
    loop {
        let count = stream.read(input.room())?;
        if count == 0 {
            return Ok(());
        }
        input.came(count);
        while let Some(request) = input.message()? {
            push(&mut output, request.len(), |out| work::answer(request, out));
        }
        stream.write_all(&output)?;
        output.clear();
    }
}

/// The client. Responses come in the order of their requests.
fn call_over(stream: &impl AsFd, load: &mut Load) -> anyhow::Result<()> {
    let mut input = Input::new();
    let (mut output, mut sent) = (Vec::new(), 0);
    for _ in 0..load.inflight() {
        issue(&mut output, load);
    }
    let mut oldest = 0;
    while load.report().is_none() {
        sent += give(stream, &output[sent..])?;
        let mut flags = RecvFlags::DONTWAIT;
        if sent == output.len() {
            (sent, flags) = (0, RecvFlags::empty());
            output.clear();
        } else {
            let wanted = PollFlags::IN | PollFlags::OUT;
            poll(&mut [PollFd::new(stream, wanted)], None)?;
        }
        let count = match recv(stream, input.room(), flags) {
            Ok((count, _)) => count,
            Err(Errno::AGAIN) => continue,
            Err(error) => return Err(error.into()),
        };
        ensure!(count != 0, "the server has closed the connection");
        input.came(count);
        while let Some(response) = input.message()? {
            load.end(oldest, response)?;
            oldest += 1;
            issue(&mut output, load);
        }
    }
    Ok(())
}

/// Adds the next request, if `load` has one.
fn issue(output: &mut Vec<u8>, load: &mut Load) {
    let len = output.len();
    let size = load.size();
    if push(output, size, |request| load.next(request)).is_none() {
        output.truncate(len);
    }
}

/// Writes as many bytes as the socket takes.
fn give(stream: &impl AsFd, bytes: &[u8]) -> anyhow::Result<usize> {
    if bytes.is_empty() {
        return Ok(0);
    }
    match send(stream, bytes, SendFlags::DONTWAIT | SendFlags::NOSIGNAL) {
        Ok(count) => Ok(count),
        Err(Errno::AGAIN) => Ok(0),
        Err(error) => Err(error.into()),
    }
}
