//! A client of gRPC that calls one method with short messages, with many calls at a time over one
//! connection. It knows only the frames of HTTP/2 (RFC 9113) that such calls need. It does not read
//! the headers of answers: a failed call has no message, so a call has succeeded if its answer has
//! a message and has ended.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The length of a frame's header.
const HEAD: usize = 9;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// Bytes that the other side may send on the connection, in addition to the initial window of the
/// RFC. No run receives so much that the window needs an update.
const RECEIVED: u32 = 1 << 30;

/// The initial window of the RFC: bytes that this side may send before the first update.
const SENT: i64 = 65_535;

/// If no byte arrives for this time, the connection has failed.
const STUCK: Duration = Duration::from_secs(10);

/// A connection.
#[derive(Debug)]
pub(super) struct Connection {
    stream: TcpStream,
    /// The encoded header fields, which are the same for all calls.
    fields: Vec<u8>,
    /// The number of the next call. Calls of clients have odd numbers.
    next: u32,
    /// Bytes of messages that may be sent.
    window: i64,
    out: Vec<u8>,
    received: Vec<u8>,
    /// The received bytes of answers that have not ended, by the numbers of their calls.
    answers: BTreeMap<u32, Vec<u8>>,
}

impl Connection {
    /// Connects, for calls of the method with this path.
    ///
    /// # Errors
    /// Nothing listens there.
    pub(super) fn open(address: SocketAddr, path: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(STUCK))?;
        let mut connection = Self {
            stream,
            fields: fields_of(path, &address.to_string()),
            next: 1,
            window: SENT,
            out: PREFACE.to_vec(),
            received: Vec::new(),
            answers: BTreeMap::new(),
        };
        connection.frame(SETTINGS, 0, 0, &[]);
        connection.frame(WINDOW_UPDATE, 0, 0, &RECEIVED.to_be_bytes());
        Ok(connection)
    }

    /// Begins a call with this message. It leaves with the next [`Self::turn`].
    ///
    /// # Errors
    /// The connection's send window is used up.
    pub(super) fn begin(&mut self, message: &[u8]) -> anyhow::Result<u32> {
        let call = self.next;
        self.next += 2;
        let fields = std::mem::take(&mut self.fields);
        self.frame(HEADERS, END_HEADERS, call, &fields);
        self.fields = fields;
        let mut data = vec![0];
        data.extend_from_slice(&u32::try_from(message.len())?.to_be_bytes());
        data.extend_from_slice(message);
        self.window -= i64::try_from(data.len())?;
        ensure!(self.window >= 0, "the window of the connection is used up");
        self.frame(DATA, END_STREAM, call, &data);
        Ok(call)
    }

    /// Sends the bytes that have not left yet, waits for bytes, and returns the calls that have
    /// ended, each with the message of its answer.
    ///
    /// # Errors
    /// The connection or a call has failed.
    pub(super) fn turn(&mut self) -> anyhow::Result<Vec<(u32, Vec<u8>)>> {
        self.stream.write_all(&self.out)?;
        self.out.clear();
        let mut bytes = [0; 16 << 10];
        let count = self.stream.read(&mut bytes)?;
        ensure!(count > 0, "the server has closed the connection");
        let mut received = std::mem::take(&mut self.received);
        received.extend_from_slice(&bytes[..count]);
        let mut ended = Vec::new();
        let mut rest = &received[..];
        while let Some((frame, after)) = Frame::split(rest) {
            self.on_frame(&frame, &mut ended)?;
            rest = after;
        }
        self.received = rest.to_vec();
        Ok(ended)
    }

    fn on_frame(
        &mut self,
        frame: &Frame<'_>,
        ended: &mut Vec<(u32, Vec<u8>)>,
    ) -> anyhow::Result<()> {
        let payload = frame.payload;
        match frame.kind {
            DATA => {
                let answer = self.answers.entry(frame.stream).or_default();
                answer.extend_from_slice(payload);
            }
            SETTINGS if frame.flags & ACK == 0 => self.frame(SETTINGS, ACK, 0, &[]),
            PING if frame.flags & ACK == 0 => self.frame(PING, ACK, 0, payload),
            WINDOW_UPDATE if frame.stream == 0 => {
                let more = payload
                    .try_into()
                    .context("a window update without four bytes")?;
                self.window += i64::from(u32::from_be_bytes(more) & i32::MAX.unsigned_abs());
            }
            RST_STREAM => bail!("call {} was reset", frame.stream),
            GOAWAY => bail!("the server ends the connection"),
            _ => {}
        }
        if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
            let answer = self.answers.remove(&frame.stream);
            let message = answer.as_deref().and_then(message_of);
            let message = message.context("a call has failed")?;
            ended.push((frame.stream, message.to_vec()));
        }
        Ok(())
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let len = u32::try_from(payload.len()).expect("frames are short");
        self.out.extend_from_slice(&len.to_be_bytes()[1..]);
        self.out.extend_from_slice(&[kind, flags]);
        self.out.extend_from_slice(&stream.to_be_bytes());
        self.out.extend_from_slice(payload);
    }
}

/// A frame.
struct Frame<'a> {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The first frame, and the bytes after it; `None` if the frame is incomplete.
    fn split(bytes: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (head, rest) = bytes.split_first_chunk::<HEAD>()?;
        let [a, b, c, kind, flags, stream @ ..] = *head;
        let len = usize::try_from(u32::from_be_bytes([0, a, b, c])).ok()?;
        let (payload, rest) = rest.split_at_checked(len)?;
        let stream = u32::from_be_bytes(stream) & i32::MAX.unsigned_abs();
        let frame = Self {
            kind,
            flags,
            stream,
            payload,
        };
        Some((frame, rest))
    }
}

/// Returns the message of an answer. `None` if the message is compressed, or if its length differs
/// from the length that the answer states.
fn message_of(answer: &[u8]) -> Option<&[u8]> {
    let (head, message) = answer.split_first_chunk::<5>()?;
    let [compressed, len @ ..] = *head;
    let len = usize::try_from(u32::from_be_bytes(len)).ok()?;
    (compressed == 0 && message.len() == len).then_some(message)
}

/// Encodes the header fields of a call. A field or a name in the static table of RFC 7541 is
/// encoded as its index there. All other text is written literally, without Huffman codes.
fn fields_of(path: &str, authority: &str) -> Vec<u8> {
    const POST: u8 = 0x80 | 3;
    const HTTP: u8 = 0x80 | 6;
    let mut fields = vec![POST, HTTP];
    // The receiver does not add these fields to its dynamic table. In the static table, 4 is
    // ":path", 1 is ":authority" and 31 is "content-type".
    for (name, value) in [
        (&[4][..], path),
        (&[1], authority),
        (&[15, 31 - 15], "application/grpc"),
        (b"\0\x02te", "trailers"),
    ] {
        fields.extend_from_slice(name);
        fields.push(u8::try_from(value.len()).expect("values are short"));
        fields.extend_from_slice(value.as_bytes());
    }
    fields
}

#[cfg(test)]
mod tests;
