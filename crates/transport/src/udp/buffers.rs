//! The memory into which datagrams are received, and the vectors that describe it to the kernel.
//!
//! Invariants: the vectors point only to memory of the same value, and the kernel writes only
//! during [`Buffers::receive_one`] and [`Buffers::receive_many`], which take `&mut self`; so
//! borrowed bytes do not change. Datagrams touch only as much of a buffer as they need. Called by
//! `rx` alone, which makes all decisions.

use std::os::fd::BorrowedFd;

use libc::{iovec, mmsghdr};

use super::addr::RawAddr;
use super::block::Block;
use super::cmsg::{self, CONTROL_BYTES, Control, Notes};
use super::ffi::{self, Errno};

/// Added to the distance between buffers, so that their first lines fall into different cache sets
/// even if the size of a buffer is a power of two.
const STAGGER: usize = 17 * 64;

/// A datagram, or several merged ones, that [`Buffers::receive_many`] brought.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceivedBytes {
    /// Bytes in the buffer.
    pub(super) len: usize,
    /// The datagram was longer than the buffer.
    pub(super) cut: bool,
    /// The contents of its control messages.
    pub(super) notes: Notes,
}

/// A number of equal buffers.
pub(super) struct Buffers {
    memory: Block<u8>,
    controls: Block<Control>,
    /// Only the kernel reads them.
    _iovecs: Block<iovec>,
    headers: Vec<mmsghdr>,
    size: usize,
}

// SAFETY: every pointer of the value leads to memory that it owns and shares with no other.
unsafe impl Send for Buffers {}

impl Buffers {
    /// `count` buffers of `size` bytes, a multiple of 64.
    pub(super) fn new(count: usize, size: usize) -> Self {
        assert!(size.is_multiple_of(64), "buffers start on cache lines");
        // SAFETY: zeros are bytes, control messages of length 0, and null pointers.
        let (memory, controls, iovecs) = unsafe {
            let memory = Block::<u8>::zeroed(count * (size + STAGGER));
            (
                memory,
                Block::<Control>::zeroed(count),
                Block::<iovec>::zeroed(count),
            )
        };
        let headers = (0..count)
            .map(|index| {
                let mut header = ffi::empty_header();
                let buffer = memory.at(index * (size + STAGGER)).as_ptr();
                let vector = iovec {
                    iov_base: buffer.cast(),
                    iov_len: size,
                };
                // SAFETY: `index` is below the number of vectors.
                unsafe { iovecs.at(index).write(vector) };
                header.msg_hdr.msg_iov = iovecs.at(index).as_ptr();
                header.msg_hdr.msg_iovlen = 1;
                header.msg_hdr.msg_control = controls.at(index).as_ptr().cast();
                header.msg_hdr.msg_controllen = CONTROL_BYTES;
                header
            })
            .collect();
        Self {
            memory,
            controls,
            _iovecs: iovecs,
            headers,
            size,
        }
    }

    /// Bytes of a buffer.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The offset at which buffer `index` begins, as [`Self::bytes`] counts.
    #[inline]
    pub(super) fn start(&self, index: usize) -> usize {
        index * (self.size + STAGGER)
    }

    /// `len` bytes from `start`, all of one buffer.
    #[inline]
    pub(super) fn bytes(&self, start: usize, len: usize) -> &[u8] {
        assert!(
            start + len <= self.memory.count(),
            "frames lie in the buffers"
        );
        // SAFETY: the range is within the block, which is initialised (zeroed, then written by the
        // kernel), and nothing writes to it while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.memory.at(start).as_ptr(), len) }
    }

    /// Receives one datagram into buffer 0. Returns its length, which may be longer than the
    /// buffer.
    #[inline]
    pub(super) fn receive_one(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        let base = self.memory.at(0).as_ptr();
        // SAFETY: buffer 0 has `size` bytes, and `&mut self` proves that they are not borrowed.
        ffi::recv(fd, unsafe {
            std::slice::from_raw_parts_mut(base, self.size)
        })
    }

    /// Like [`Self::receive_one`], and takes the sender's address.
    pub(super) fn receive_one_from(
        &mut self,
        fd: BorrowedFd<'_>,
    ) -> Result<(usize, RawAddr), Errno> {
        let mut source = RawAddr::room();
        let base = self.memory.at(0).as_ptr();
        // SAFETY: as in `receive_one`.
        let buffer = unsafe { std::slice::from_raw_parts_mut(base, self.size) };
        let len = ffi::recv_from(fd, buffer, &mut source)?;
        Ok((len, source))
    }

    /// Receives datagrams into as many buffers as needed. Returns the number of filled buffers,
    /// counted from buffer 0.
    #[inline]
    pub(super) fn receive_many(&mut self, fd: BorrowedFd<'_>) -> Result<usize, Errno> {
        // SAFETY: the headers lead to blocks that `self` owns and that are not borrowed now.
        unsafe { ffi::recv_many(fd, &mut self.headers) }
    }

    /// Like [`Self::receive_many`], and takes the address of the first sender.
    pub(super) fn receive_many_from(
        &mut self,
        fd: BorrowedFd<'_>,
    ) -> Result<(usize, RawAddr), Errno> {
        let mut source = RawAddr::room();
        let first = &mut self.headers[0].msg_hdr;
        (first.msg_name, first.msg_namelen) = (source.as_mut_ptr().cast(), source.len());
        let filled = self.receive_many(fd);
        let first = &mut self.headers[0].msg_hdr;
        (first.msg_name, first.msg_namelen) = (std::ptr::null_mut(), 0);
        Ok((filled?, source))
    }

    /// The datagrams that the last [`Self::receive_many`] put into buffer `index`. Call it once for
    /// each filled buffer: it makes the buffer ready for the next call.
    #[inline]
    pub(super) fn arrival(&mut self, index: usize) -> ReceivedBytes {
        let header = &mut self.headers[index];
        let control_len = header.msg_hdr.msg_controllen.min(CONTROL_BYTES);
        header.msg_hdr.msg_controllen = CONTROL_BYTES;
        // SAFETY: there are as many control blocks as headers, and the kernel is not writing.
        let control = unsafe { self.controls.at(index).as_ref() };
        ReceivedBytes {
            len: (header.msg_len as usize).min(self.size),
            cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
            notes: cmsg::parse(&control.0[..control_len]),
        }
    }
}

impl std::fmt::Debug for Buffers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Buffers")
            .field("count", &self.headers.len())
            .finish_non_exhaustive()
    }
}
