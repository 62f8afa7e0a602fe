//! Packets of a large request that come in order, each in a frame of its own. Their headers may
//! differ only in the packet number and in one flag, so only the first is decoded.
//!
//! Called by `server/events.rs`.

use dunlin_wire::{Flags, Header};

use super::Reassembly;
use crate::handle::AssemblyIdx;
use crate::packet::words::{words, words_of};

/// The bit of [`Flags::FOLLOWED`] in the first word of a header.
const FOLLOWED: u64 = (Flags::FOLLOWED.0 as u64) << 8;

/// Packets that were taken together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub(crate) packets: u32,
    /// One of them lacks [`Flags::FOLLOWED`], so a CR is due (rule S7).
    pub(crate) is_credit_due: bool,
}

impl Reassembly {
    /// Takes packets of the request at `place` that are in order, except the request's last one, as
    /// [`Self::take`] would take each. `header` is the header of the first frame. The run ends
    /// before the first frame that does not continue it.
    #[inline]
    pub(crate) fn take_run<'f>(
        &mut self,
        place: AssemblyIdx,
        header: &Header,
        data_size: usize,
        frames: impl Iterator<Item = &'f [u8]>,
    ) -> Run {
        let assembly = self.assemblies.at_mut(place);
        let first = header.pkt.0;
        let mut run = Run {
            packets: 0,
            is_credit_due: false,
        };
        let is_next = assembly.arrivals.next_in_order() == Some(first);
        let Some(message) = assembly.message.as_mut().filter(|_| is_next) else {
            return run;
        };
        if header.size != assembly.size {
            return run;
        }
        // The last packet, which may be shorter, ends the request.
        let most = (assembly.packets - 1).saturating_sub(first);
        let [head, sizes, numbers] = words(&header.encode());
        let mut start = first as usize * data_size;
        for bytes in frames {
            let Some((words, data)) = words_of(bytes) else {
                break;
            };
            // The number of the packet is in the lower half, and below 2^24.
            let number = numbers + u64::from(run.packets);
            let differs = (words[0] ^ head) & !FOLLOWED | words[1] ^ sizes | words[2] ^ number;
            if differs != 0 || data.len() != data_size || run.packets == most {
                break;
            }
            let end = start + data_size;
            message.prepare(end);
            let Some(place) = message.data_mut().get_mut(start..end) else {
                break;
            };
            place.copy_from_slice(data);
            start = end;
            run.packets += 1;
            run.is_credit_due |= words[0] & FOLLOWED == 0;
        }
        if run.packets != 0 {
            assembly.arrivals.on_run(first + run.packets);
            assembly.trigger = first + run.packets - 1;
        }
        run
    }
}

#[cfg(test)]
mod tests;
