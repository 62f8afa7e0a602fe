//! The bytes of a request, in the slot of its call. After the first calls they are in a msgbuf of
//! the endpoint, which the slot keeps from one call to the next: the caller's task encodes into it,
//! and the endpoint sends it as it is. Only the endpoint's thread makes msgbufs, so a call whose
//! slot has none, or a smaller one, encodes into other memory, and the thread copies the bytes
//! once.
//!
//! Invariant: while an attempt has the msgbuf, no other attempt needs it; calls that may have two
//! attempts at once are copied for each.

use dunlin_msgbuf::MsgBuf;

#[derive(Debug, Default)]
pub(crate) struct Body {
    /// The bytes before the message, which a front takes.
    gap: usize,
    /// The bytes of the message.
    len: usize,
    /// Whether `buf` holds the message; if not, `memory` does, or an attempt.
    is_in_buf: bool,
    buf: Option<MsgBuf>,
    memory: Vec<u8>,
}

impl Body {
    /// Has `write` encode a message of `len` bytes after a gap.
    pub(crate) fn write(&mut self, gap: usize, len: usize, write: impl FnOnce(&mut [u8])) {
        (self.gap, self.len) = (gap, len);
        let fits = |buf: &mut MsgBuf| buf.resize(gap + len).is_ok();
        self.is_in_buf = self.buf.as_mut().is_some_and(fits);
        let out: &mut [u8] = match &mut self.buf {
            Some(buf) if self.is_in_buf => buf.data_mut(),
            _ => {
                self.memory.clear();
                self.memory.resize(gap + len, 0);
                &mut self.memory
            }
        };
        write(&mut out[gap..]);
    }

    pub(crate) const fn gap(&self) -> usize {
        self.gap
    }

    /// The bytes that are kept for the next request.
    #[cfg(test)]
    pub(crate) fn kept(&self) -> usize {
        let buf = self.buf.as_ref().map_or(0, MsgBuf::capacity);
        buf + self.memory.capacity()
    }

    /// The message, unless an attempt has it.
    pub(crate) fn message(&self) -> &[u8] {
        match &self.buf {
            Some(buf) if self.is_in_buf => &buf.data()[self.gap..],
            _ => self.memory.get(self.gap..).unwrap_or_default(),
        }
    }

    /// Moves the message so that it has this gap before it.
    pub(crate) fn set_gap(&mut self, gap: usize) {
        if gap == self.gap {
            return;
        }
        let (from, len) = (self.gap, self.len);
        let total = gap + len;
        if let Some(buf) = self.buf.as_mut().filter(|_| self.is_in_buf) {
            if buf.resize(total.max(from + len)).is_ok() {
                buf.data_mut().copy_within(from..from + len, gap);
                // The buffer gets shorter, or keeps its length, so this cannot fail.
                let _ = buf.resize(total);
                self.gap = gap;
                return;
            }
            self.memory.clear();
            self.memory.extend_from_slice(buf.data());
            self.is_in_buf = false;
        }
        self.memory.resize(total.max(from + len), 0);
        self.memory.copy_within(from..from + len, gap);
        self.memory.truncate(total);
        self.gap = gap;
    }

    /// The request of an attempt. If the msgbuf has the message, the attempt gets it, or a copy if
    /// the call `may_have_two` attempts at once; `alloc` makes a msgbuf for a copy.
    pub(crate) fn request<E>(
        &mut self,
        may_have_two: bool,
        alloc: impl FnOnce(usize) -> Result<MsgBuf, E>,
    ) -> Result<MsgBuf, E> {
        if self.is_in_buf && !may_have_two {
            self.is_in_buf = false;
            self.memory.clear();
            return Ok(self.buf.take().expect("it has the message"));
        }
        debug_assert_eq!(self.message().len(), self.len, "another attempt has it");
        let mut copy = alloc(self.gap + self.len)?;
        copy.data_mut()[self.gap..].copy_from_slice(self.message());
        Ok(copy)
    }

    /// Takes back the msgbuf with the request from an attempt that has ended, for the next attempt
    /// or call. Returns a msgbuf that the slot does not need.
    pub(crate) fn put_back(&mut self, request: MsgBuf) -> Option<MsgBuf> {
        if self.is_in_buf {
            return Some(request);
        }
        self.is_in_buf = true;
        self.buf.replace(request)
    }

    /// The call has ended: keeps at most `most` bytes for the next one.
    pub(crate) fn end(&mut self, most: usize) {
        self.is_in_buf = false;
        self.buf.take_if(|buf| buf.capacity() > most);
        if self.memory.capacity() > most {
            self.memory = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests;
