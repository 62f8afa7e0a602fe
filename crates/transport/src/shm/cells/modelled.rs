//! The accesses to a packet's bytes in a form that loom can check: the words of continuation cells
//! are atomics, and their bodies are loom's cells, which report concurrent accesses.

use super::super::sync::Ordering;
use super::{CELL, Cells, HALF, ONE_CELL, WORD};

impl Cells {
    /// Does the same as in the real build.
    ///
    /// # Safety
    /// `from` is good for reading `len` bytes.
    pub(in super::super) unsafe fn write(
        &self,
        at: usize,
        offset: usize,
        from: *const u8,
        len: usize,
    ) {
        // SAFETY: as the caller promises.
        let bytes = unsafe { std::slice::from_raw_parts(from, len) };
        let start = WORD + offset;
        for cell in start / CELL..(start + len).div_ceil(CELL) {
            let at = self.cell(at + cell);
            let overlap = |low: usize, high: usize| {
                let low = (cell * CELL + low).max(start);
                let high = (cell * CELL + high).min(start + len);
                (low < high).then(|| (low % CELL, &bytes[low - start..high - start]))
            };
            if let Some((first, piece)) = overlap(0, WORD) {
                let mut word = at.word.load(Ordering::Relaxed).to_le_bytes();
                word[first..first + piece.len()].copy_from_slice(piece);
                at.word.store(u64::from_le_bytes(word), Ordering::Relaxed);
            }
            if let Some((first, piece)) = overlap(WORD, CELL) {
                at.body.with_mut(|body| {
                    // SAFETY: loom has checked that no other thread uses the body now.
                    let body = unsafe { &mut *body };
                    body[first - WORD..][..piece.len()].copy_from_slice(piece);
                });
            }
        }
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// None here: loom checks the accesses.
    pub(in super::super) unsafe fn write_whole(&self, at: usize, from: &[u8; ONE_CELL]) {
        // SAFETY: the bytes are an array.
        unsafe { self.write(at, 0, from.as_ptr(), from.len()) };
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// None here: loom checks the accesses.
    pub(in super::super) unsafe fn write_settled(&self, at: usize, from: &[u8; ONE_CELL]) {
        // SAFETY: the bytes are an array.
        unsafe { self.write(at, 0, from.as_ptr(), from.len()) };
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// None here: loom checks the accesses.
    pub(in super::super) unsafe fn claim(&self, at: usize) {
        // SAFETY: the bytes are an array.
        unsafe { self.write(at, ONE_CELL - WORD, [0; WORD].as_ptr(), WORD) };
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// None here: loom checks the accesses.
    pub(in super::super) unsafe fn write_possible_second(
        &self,
        at: usize,
        from: &[u8; CELL],
        len: usize,
        _nowhere: *mut [u8; CELL],
    ) {
        if len > ONE_CELL {
            // SAFETY: the bytes are an array.
            unsafe { self.write_second(at, from, len - ONE_CELL) };
        }
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// None here: loom checks the accesses.
    pub(in super::super) unsafe fn write_second(&self, at: usize, from: &[u8; CELL], len: usize) {
        let len = len.next_multiple_of(CELL / 2);
        // SAFETY: the bytes are an array.
        unsafe { self.write(at, ONE_CELL, from[..len].as_ptr(), len) };
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// `from` is good for reading as many lines as the halves take.
    pub(in super::super) unsafe fn write_rest(
        &self,
        at: usize,
        from: *const [u8; CELL],
        halves: usize,
    ) {
        // SAFETY: as the caller promises.
        unsafe { self.write(at, ONE_CELL, from.cast(), halves * HALF) };
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// None here: loom checks the accesses.
    pub(in super::super) unsafe fn write_header(&self, at: usize, from: &[u8; HALF]) {
        // SAFETY: the bytes are an array.
        unsafe { self.write(at, 0, from[WORD..].as_ptr(), HALF - WORD) };
    }

    /// Does the same as in the real build.
    ///
    /// # Safety
    /// `from` is good for reading `len` bytes.
    pub(in super::super) unsafe fn write_message(&self, at: usize, from: *const u8, len: usize) {
        // SAFETY: as the caller promises.
        unsafe { self.write(at, HALF - WORD, from, len) };
    }

    /// Does nothing: there is no cache in the model.
    pub(in super::super) fn prefetch_write(&self, _at: u32) {}

    /// The `len` bytes of the packet whose first cell is `at`.
    pub(in super::super) fn read(&self, at: u32, len: usize) -> Vec<u8> {
        let mut out = Vec::with_capacity(WORD + len);
        for cell in 0..(WORD + len).div_ceil(CELL) {
            let at = self.cell(at as usize + cell);
            out.extend(at.word.load(Ordering::Relaxed).to_le_bytes());
            // SAFETY: loom has checked that no other thread writes to the body now.
            at.body.with(|body| out.extend(unsafe { &*body }));
        }
        out[WORD..WORD + len].to_vec()
    }
}
