//! A window of packets for the kernel: staged bytes, vectors, messages.
//!
//! Small packets are copied back to back into a staging buffer, so that a message of small packets
//! is one piece. Large packets are not copied; the kernel gathers them.
//!
//! Invariants: between one [`Messages::clear`] and the next, vectors lead to the staging buffer and
//! to bytes that [`Messages::append`] was given; the room never overflows, because a window has at
//! most [`WINDOW`] packets. Called by `tx` alone, which decides what goes where.

use std::os::fd::BorrowedFd;

use dunlin_core::transport::PeerId;
use libc::{iovec, mmsghdr};

use super::addr::RawAddr;
use super::block::Block;
use super::cmsg::SegmentSize;
use super::ffi::{self, Errno};

/// The most packets in a window.
pub(super) const WINDOW: usize = 128;
/// Packets up to this size are copied: one piece costs the kernel less than two.
const COPY_BYTES: usize = 512;
/// The limit for a packet that is alone in its window. It is higher, because a copied packet can be
/// sent with `sendto`, which saves more than the copy costs.
const COPY_ALONE_BYTES: usize = 4096;
const _: () = assert!(COPY_ALONE_BYTES <= WINDOW * COPY_BYTES);

/// One or several datagrams to one peer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The peer to which the message goes.
    pub(super) peer: PeerId,
    /// Bytes of each datagram but the last; 0 if there is only one.
    pub(super) segment: u16,
    /// Packets in the message.
    pub(super) packets: u32,
    /// Bytes of these packets.
    pub(super) bytes: u32,
    addr: RawAddr,
    first_piece: usize,
    pieces: usize,
}

/// The messages of a window.
pub(super) struct Messages {
    staging: Block<u8>,
    staged: usize,
    copy_bytes: usize,
    pieces: Vec<iovec>,
    list: Vec<Message>,
    headers: Vec<mmsghdr>,
    controls: Vec<SegmentSize>,
}

// SAFETY: vectors lead to memory that the value owns or that a caller of `append` vouched for, and
// they are followed only in calls whose caller vouches for them again.
unsafe impl Send for Messages {}

impl Messages {
    /// Room for one window.
    pub(super) fn new() -> Self {
        Self {
            // SAFETY: zero is a `u8`.
            staging: unsafe { Block::zeroed(WINDOW * COPY_BYTES) },
            staged: 0,
            copy_bytes: COPY_BYTES,
            // A message that is split appends copies of its pieces, cut where a datagram ends.
            pieces: Vec::with_capacity(5 * WINDOW),
            list: Vec::with_capacity(WINDOW),
            headers: Vec::with_capacity(WINDOW),
            controls: Vec::with_capacity(WINDOW),
        }
    }

    /// Begins a window of `packets` packets.
    #[inline]
    pub(super) fn clear(&mut self, packets: usize) {
        assert!(packets <= WINDOW, "the caller cuts bursts into windows");
        self.copy_bytes = if packets == 1 {
            COPY_ALONE_BYTES
        } else {
            COPY_BYTES
        };
        self.staged = 0;
        self.pieces.clear();
        self.list.clear();
        self.headers.clear();
        self.controls.clear();
    }

    /// Begins a message.
    #[inline]
    pub(super) fn open(&mut self, peer: PeerId, addr: &RawAddr) {
        let first_piece = self.pieces.len();
        let (addr, segment) = (*addr, 0);
        let message = Message {
            peer,
            segment,
            packets: 0,
            bytes: 0,
            addr,
            first_piece,
            pieces: 0,
        };
        self.list.push(message);
    }

    /// Adds a packet to the last message, and sets the message's segment size to `segment`.
    #[inline]
    pub(super) fn append(&mut self, inline: &[u8], data: &[u8], segment: u32) {
        let len = inline.len() + data.len();
        if len <= self.copy_bytes {
            self.stage(inline);
            self.stage(data);
        } else {
            self.pieces.push(piece(inline.as_ptr(), inline.len()));
            self.pieces.push(piece(data.as_ptr(), data.len()));
        }
        let pieces = self.pieces.len();
        let message = self.list.last_mut().expect("a message is open");
        message.pieces = pieces - message.first_piece;
        message.packets += 1;
        message.bytes += u32::try_from(len).expect("a packet has at most 64 KB");
        message.segment = u16::try_from(segment).expect("a segment has at most 64 KB");
    }

    /// Messages of the window.
    #[inline]
    pub(super) fn list(&self) -> &[Message] {
        &self.list
    }

    /// The bytes and the address of the window's datagram, if it is the only one and was copied.
    #[inline]
    pub(super) fn alone(&self) -> Option<(&[u8], &RawAddr)> {
        let [message] = self.list.as_slice() else {
            return None;
        };
        if message.bytes as usize != self.staged || message.segment != 0 {
            return None;
        }
        // SAFETY: `staged` bytes at the start of the staging buffer were written, and nothing
        // writes to it while `self` is borrowed.
        let bytes = unsafe { std::slice::from_raw_parts(self.staging.at(0).as_ptr(), self.staged) };
        Some((bytes, &message.addr))
    }

    /// Hands the messages from number `from` on to the kernel. Returns the number of messages sent,
    /// at least one.
    ///
    /// # Safety
    /// The bytes given to [`Self::append`] since [`Self::clear`] are still there and unchanged.
    pub(super) unsafe fn send(&mut self, fd: BorrowedFd<'_>, from: usize) -> Result<usize, Errno> {
        if self.headers.is_empty() {
            self.fill_headers();
        }
        // SAFETY: `fill_headers` made them lead to `self` and to what the caller vouches for.
        unsafe { ffi::send_many(fd, &mut self.headers[from..]) }
    }

    /// Hands the datagrams of message `index` to the kernel one by one. Returns the number of
    /// refused datagrams.
    ///
    /// # Safety
    /// As for [`Self::send`].
    pub(super) unsafe fn send_split(&mut self, fd: BorrowedFd<'_>, index: usize) -> u32 {
        let message = self.list[index];
        let mut refused = 0;
        let mut left = message.bytes as usize;
        let (mut at, mut skip) = (message.first_piece, 0);
        while left > 0 {
            let len = left.min(usize::from(message.segment));
            let behind = self.pieces.len();
            (at, skip) = self.copy_pieces(at, skip, len);
            let mut header = addressed_to(&message);
            header.msg_hdr.msg_iov = self.pieces[behind..].as_mut_ptr();
            header.msg_hdr.msg_iovlen = self.pieces.len() - behind;
            // SAFETY: as in `send`; the pieces are parts of those of the message.
            let sent = unsafe { ffi::send_many(fd, std::slice::from_mut(&mut header)) };
            refused += u32::from(sent.is_err());
            self.pieces.truncate(behind);
            left -= len;
        }
        refused
    }

    #[inline]
    fn stage(&mut self, bytes: &[u8]) {
        let end = self.staged + bytes.len();
        assert!(
            end <= self.staging.count(),
            "a window fits the staging buffer"
        );
        let to = self.staging.at(self.staged).as_ptr();
        // SAFETY: the staging buffer has room for them from `to` on, as was just checked, and no
        // other pointer leads there.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        self.staged = end;
        let first_piece = self.list.last().map_or(0, |message| message.first_piece);
        match self.pieces[first_piece..].last_mut() {
            Some(last) if last.iov_base.cast::<u8>().wrapping_add(last.iov_len) == to => {
                last.iov_len += bytes.len();
            }
            _ => self.pieces.push(piece(to, bytes.len())),
        }
    }

    fn fill_headers(&mut self) {
        for message in &self.list {
            self.controls.push(SegmentSize::new(message.segment));
        }
        let pieces = self.pieces.as_mut_ptr();
        let controls = self.controls.as_mut_ptr();
        for (index, message) in self.list.iter().enumerate() {
            let mut header = addressed_to(message);
            header.msg_hdr.msg_iov = pieces.wrapping_add(message.first_piece);
            header.msg_hdr.msg_iovlen = message.pieces;
            if message.segment != 0 {
                header.msg_hdr.msg_control = controls.wrapping_add(index).cast();
                header.msg_hdr.msg_controllen = size_of::<SegmentSize>();
            }
            self.headers.push(header);
        }
    }

    /// Appends pieces that cover `len` bytes of earlier pieces, from byte `skip` of piece `at` on.
    /// Returns the piece and the offset in it at which the next byte lies.
    fn copy_pieces(&mut self, mut at: usize, mut skip: usize, mut len: usize) -> (usize, usize) {
        while len > 0 {
            let whole = self.pieces[at];
            let part = len.min(whole.iov_len - skip);
            self.pieces
                .push(piece(whole.iov_base.cast::<u8>().wrapping_add(skip), part));
            len -= part;
            skip += part;
            if skip == whole.iov_len {
                (at, skip) = (at + 1, 0);
            }
        }
        (at, skip)
    }
}

/// The address part of a header.
fn addressed_to(message: &Message) -> mmsghdr {
    let mut header = ffi::empty_header();
    header.msg_hdr.msg_name = message.addr.as_ptr().cast_mut().cast();
    header.msg_hdr.msg_namelen = message.addr.len();
    header
}

fn piece(at: *const u8, len: usize) -> iovec {
    iovec {
        iov_base: at.cast_mut().cast(),
        iov_len: len,
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages")
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}
