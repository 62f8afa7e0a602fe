//! The two forms of [`Automata`] in C.
//!
//! Invariants: C gets pointers into payloads and automata that live as long as the call. C reports
//! a match through a function that never unwinds into C: it catches a panic of the caller's code,
//! and resumes it once C has returned.

use std::any::Any;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use gopt::MAX_WIDTH;

use crate::aho_corasick::{Automata, Match, Packet};

/// Memory that calls reuse: the packets that C reads, and the order that it sorts.
#[derive(Default, Debug)]
pub struct OrderInC {
    packets: Vec<PacketInC>,
    turns: Vec<TurnInC>,
}

#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct PacketInC {
    automaton: usize,
    payload: *const u8,
    len: usize,
}

// SAFETY: the pointers are only followed while the packets that they came from are borrowed.
unsafe impl Send for PacketInC {}
// SAFETY: as above.
unsafe impl Sync for PacketInC {}

#[derive(Clone, Copy, Default, Debug)]
#[repr(C)]
struct TurnInC {
    automaton: u32,
    len: u32,
    packet: u32,
}

#[repr(C)]
struct AutomataInC {
    next: *const u32,
    starts: *const u32,
    count: usize,
}

/// Called with a packet's number, the end of a match, and the state in which patterns end.
type Report = unsafe extern "C" fn(*mut c_void, usize, usize, u32);

unsafe extern "C" {
    fn gopt_aho_corasick_plain(
        automata: *const AutomataInC,
        packets: *const PacketInC,
        len: usize,
        found: Report,
        context: *mut c_void,
    );
    fn gopt_aho_corasick_batch(
        automata: *const AutomataInC,
        width: usize,
        turns: *mut TurnInC,
        packets: *const PacketInC,
        len: usize,
        found: Report,
        context: *mut c_void,
    );
}

/// The state of [`report`]. C gets a pointer to it, and passes the pointer to [`report`].
struct Context<'a, F> {
    automata: &'a Automata,
    found: F,
    panic: Option<Box<dyn Any + Send>>,
}

impl Automata {
    /// [`Automata::plain`] in C.
    pub fn plain_in_c(
        &self,
        order: &mut OrderInC,
        packets: &[Packet<'_>],
        found: impl FnMut(Match),
    ) {
        order.read(packets);
        self.call(found, |automata, report, context| {
            // SAFETY: C gets the number of packets, and with each the length of its payload; `call`
            // vouches for the other arguments.
            unsafe {
                gopt_aho_corasick_plain(
                    automata,
                    order.packets.as_ptr(),
                    packets.len(),
                    report,
                    context,
                );
            }
        });
    }

    /// [`Automata::batch`] in C.
    ///
    /// # Panics
    /// If there are 2^32 packets or more.
    pub fn batch_in_c(
        &self,
        width: usize,
        order: &mut OrderInC,
        packets: &[Packet<'_>],
        found: impl FnMut(Match),
    ) {
        let fits = u32::try_from(packets.len()).is_ok();
        assert!(fits, "numbers of packets have 32 bits");
        order.read(packets);
        self.call(found, |automata, report, context| {
            // SAFETY: as in `plain_in_c`; there is a turn for each packet, and at most `MAX_WIDTH`
            // lanes.
            unsafe {
                gopt_aho_corasick_batch(
                    automata,
                    width.clamp(1, MAX_WIDTH),
                    order.turns.as_mut_ptr(),
                    order.packets.as_ptr(),
                    packets.len(),
                    report,
                    context,
                );
            }
        });
    }

    /// Calls `in_c` with the arguments that both forms need: automata all of whose transitions lead
    /// to existing states, and a function that may be called with the context.
    fn call<F: FnMut(Match)>(
        &self,
        found: F,
        in_c: impl FnOnce(*const AutomataInC, Report, *mut c_void),
    ) {
        let automata = AutomataInC {
            next: self.next.as_ptr(),
            starts: self.starts.as_ptr(),
            count: self.starts.len(),
        };
        let mut context = Context {
            automata: self,
            found,
            panic: None,
        };
        in_c(&raw const automata, report::<F>, (&raw mut context).cast());
        if let Some(panic) = context.panic {
            resume_unwind(panic);
        }
    }
}

impl OrderInC {
    /// Makes room for packets, and describes them as C reads them.
    fn read(&mut self, packets: &[Packet<'_>]) {
        let in_c = packets.iter().map(|packet| PacketInC {
            automaton: packet.automaton,
            payload: packet.payload.as_ptr(),
            len: packet.payload.len(),
        });
        self.packets.clear();
        self.packets.extend(in_c);
        self.turns.resize(packets.len(), TurnInC::default());
    }
}

/// Gives the patterns of a state to the caller's code. Once that has panicked, does nothing.
///
/// # Safety
/// `context` is a `Context<F>` that has no other user meanwhile.
unsafe extern "C" fn report<F: FnMut(Match)>(
    context: *mut c_void,
    packet: usize,
    end: usize,
    state: u32,
) {
    // SAFETY: as above.
    let context = unsafe { &mut *context.cast::<Context<'_, F>>() };
    if context.panic.is_some() {
        return;
    }
    let hand_on = || {
        let automata = context.automata;
        automata.report(state, packet, end, &mut context.found);
    };
    context.panic = catch_unwind(AssertUnwindSafe(hand_on)).err();
}
