//! The record of the checkers: the result of every call, and whether each session was attacked.
//!
//! Invariants: a handler runs at most once for a call, and a call completes exactly once, with its
//! request unchanged. On sessions that no attacker with the right token has attacked, answers are
//! right and errors have a reason.

use dunlin_core::{Done, Nanos, RpcError, Session};
use dunlin_wire::{ErrorCode, Header, PacketType, Ran, SessionNum, Token};

use super::letter::{LETTER_LEN, Letter, Mode, write_answer};
use super::net::{MAX_MESSAGE, REFERRED_LEN};
use super::record::{Fact, Recorder};

/// One session, seen from both hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    pub(super) sessions: [Session; 2],
    pub(super) tokens: [Token; 2],
    /// Whether an attacker that knew a token has sent packets.
    tainted: bool,
}

/// The kind of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) issuer: usize,
    pub(super) pair: usize,
    pub(super) kind: u8,
    pub(super) mode: Mode,
    pub(super) len: usize,
    pub(super) answer_len: u16,
    /// Bytes that the response buffer holds.
    pub(super) room: usize,
    /// Longest answer of batch and background handlers.
    pub(super) limit: u32,
    pub(super) deadline: Nanos,
}

/// The state of a call.
#[derive(Clone, Copy, Debug)]
struct CallRecord {
    terms: Terms,
    runs: u32,
    /// Whether its handler has answered or dropped its request.
    answered: bool,
    cancelled: bool,
    completed: bool,
    /// Whether an attacker also sent its request under another number.
    forged: bool,
}

#[derive(Default, Debug)]
pub(super) struct Ledger {
    pub(super) pairs: Vec<Pair>,
    pub(super) record: Recorder,
    calls: Vec<CallRecord>,
}

impl Ledger {
    pub(super) fn new(record: Recorder) -> Self {
        Self {
            record,
            ..Self::default()
        }
    }

    pub(super) fn add_pair(&mut self, sessions: [Session; 2], tokens: [Token; 2]) {
        self.pairs.push(Pair {
            sessions,
            tokens,
            tainted: false,
        });
    }

    pub(super) fn pair_of(&self, host: usize, session: Session) -> Option<usize> {
        self.pairs
            .iter()
            .position(|pair| pair.sessions[host] == session)
    }

    /// Adds a call and returns its number.
    pub(super) fn add_call(&mut self, terms: Terms) -> u32 {
        self.calls.push(CallRecord {
            terms,
            runs: 0,
            answered: false,
            cancelled: false,
            completed: false,
            forged: false,
        });
        u32::try_from(self.calls.len() - 1).expect("an input has few steps")
    }

    /// Notes that the call was refused, so that no completion may come.
    pub(super) fn refuse(&mut self, id: u32) {
        self.calls[id as usize].completed = true;
    }

    /// Notes that the user has cancelled the call.
    pub(super) fn cancel(&mut self, id: u32) {
        self.calls[id as usize].cancelled = true;
    }

    pub(super) fn letter(&self, id: u32) -> Letter {
        let terms = &self.calls[id as usize].terms;
        Letter {
            id,
            mode: terms.mode,
            answer_len: terms.answer_len,
        }
    }

    /// Notes that bytes are about to arrive that no host has sent.
    pub(super) fn taint(&mut self, bytes: &[u8]) {
        let mut is_known = false;
        for pair in &mut self.pairs {
            let knows = |token: &Token| bytes.windows(4).any(|part| part == token.0.to_le_bytes());
            if pair.tokens.iter().any(knows) {
                pair.tainted = true;
                is_known = true;
            }
        }
        let data = bytes.get(dunlin_wire::HEADER_LEN..).unwrap_or_default();
        if is_known
            && let Some(letter) = Letter::read(data)
            && let Some(call) = self.calls.get_mut(letter.id as usize)
        {
            call.forged = true;
        }
    }

    /// Like [`Self::taint`], for a copy of `real` with another header. A copy that keeps the name
    /// of the request cannot make its handler run again, nor can a copy with a number that no slot
    /// awaits.
    pub(super) fn taint_copy(&mut self, real: &[u8], copy: &[u8]) {
        let forged: Vec<bool> = self.calls.iter().map(|call| call.forged).collect();
        self.taint(copy);
        let keeps_name = request_name(real).is_some() && request_name(real) == request_name(copy);
        if keeps_name || is_far_off(real, copy) {
            for (call, forged) in self.calls.iter_mut().zip(forged) {
                call.forged = forged;
            }
        }
    }

    /// Checks a condition inside a handler. The endpoint would survive a plain panic there, but a
    /// panic that holds the ledger's lock ends the run.
    pub(super) fn demand(&self, holds: bool, what: &str) {
        assert!(holds, "{what}");
    }

    fn any_tainted(&self) -> bool {
        self.pairs.iter().any(|pair| pair.tainted)
    }

    /// Notes that a handler runs at `host`. Returns what the handler must do.
    pub(super) fn on_run(&mut self, host: usize, data: &[u8]) -> Letter {
        self.record.note(|| Fact::Ran(host, data.to_vec()));
        let nothing = Letter {
            id: u32::MAX,
            mode: Mode::Reply,
            answer_len: 0,
        };
        let Some(letter) = Letter::read(data) else {
            let is_short = data.len() < LETTER_LEN;
            assert!(
                is_short || self.any_tainted(),
                "a request arrived that was not sent"
            );
            return nothing;
        };
        let any_tainted = self.any_tainted();
        let Some(call) = self.calls.get_mut(letter.id as usize) else {
            assert!(any_tainted, "a request arrived that was not sent");
            return nothing;
        };
        call.runs += 1;
        call.answered |= !is_kept(&call.terms);
        if call.forged {
            return letter;
        }
        assert_ne!(
            call.terms.issuer, host,
            "a request ran at the host that issued it"
        );
        assert_eq!(call.runs, 1, "a handler ran twice for call {}", letter.id);
        let mut sent = vec![0; call.terms.len];
        let pair = call.terms.pair;
        self.letter(letter.id).write(&mut sent);
        assert!(
            self.pairs[pair].tainted || sent == data,
            "a request was garbled"
        );
        letter
    }

    /// Notes that a kept request is answered or dropped.
    pub(super) fn on_answer(&mut self, letter: Letter) {
        if let Some(call) = self.calls.get_mut(letter.id as usize) {
            call.answered = true;
        }
    }

    /// Notes that the call has ended at its issuer. `open`: its session is still open.
    pub(super) fn on_done(&mut self, host: usize, done: &Done, now: Nanos, open: bool) {
        self.record.note_end(host, done, now);
        let id = u32::try_from(done.tag.0).expect("tags are numbers of calls");
        let letter = self.letter(id);
        let call = &mut self.calls[id as usize];
        assert_eq!(
            call.terms.issuer, host,
            "a completion came to the wrong host"
        );
        assert!(!call.completed, "call {id} completed twice");
        call.completed = true;
        let call = *call;
        let mut sent = vec![0; call.terms.len];
        letter.write(&mut sent);
        assert_eq!(done.request.data(), sent, "a request came back changed");
        if !self.pairs[call.terms.pair].tainted {
            let reason = judge(id, &call, done, now, open);
            assert_eq!(
                reason,
                Ok(()),
                "call {id} ended in {:?}: {call:?}",
                done.result
            );
        }
    }

    /// Checks that every call has completed.
    pub(super) fn assert_all_completed(&self) {
        for (id, call) in self.calls.iter().enumerate() {
            assert!(call.completed, "call {id} never completed: {call:?}");
        }
    }
}

/// Whether the handler keeps the request after it has returned.
fn is_kept(terms: &Terms) -> bool {
    use super::host::{BACKGROUND, NESTED};
    terms.kind == NESTED || terms.mode == Mode::Hold && terms.kind != BACKGROUND
}

/// No slot awaits a number further than this from a number that was sent, because each call and
/// each forged packet moves a slot by one window, and an input has few steps.
const REACH: u32 = 1 << 20;

/// True if no slot awaits the copy's request number (rule S2).
fn is_far_off(real: &[u8], copy: &[u8]) -> bool {
    let [Ok(real), Ok(copy)] = [real, copy].map(Header::decode) else {
        return false;
    };
    let ahead = copy.req.0.wrapping_sub(real.req.0);
    ahead.min(ahead.wrapping_neg()) > REACH
}

/// Session, token and number of a packet, if it is a request.
fn request_name(bytes: &[u8]) -> Option<(SessionNum, Token, u32)> {
    let header = Header::decode(bytes).ok()?;
    (header.kind == PacketType::Req).then_some((header.session, header.token, header.req.0))
}

/// Whether a call may end like this on a session that was not attacked.
fn judge(
    id: u32,
    call: &CallRecord,
    done: &Done,
    now: Nanos,
    open: bool,
) -> Result<(), &'static str> {
    let need = |holds: bool, what| if holds { Ok(()) } else { Err(what) };
    match done.ran() {
        Ran::No => need(call.runs == 0, "it ran, but its end says that it did not")?,
        // If a request is too short for a letter, the ledger cannot tell which call the handler ran
        // for.
        Ran::Yes => need(
            call.runs != 0 || call.terms.len < LETTER_LEN,
            "no handler ran",
        )?,
        Ran::Unknown => {}
    }
    match done.result {
        Ok(()) => {
            // A request that is too short for a letter gets an empty answer.
            let says = call.terms.len >= LETTER_LEN;
            let len = if says {
                usize::from(call.terms.answer_len)
            } else {
                0
            };
            let mut expected = vec![0; len];
            write_answer(id, &mut expected);
            need(done.response.data() == expected, "the answer is wrong")?;
            need(!says || call.runs != 0, "no handler ran")
        }
        Err(RpcError::DeadlinePassed(_)) => {
            need(call.terms.deadline <= now, "the deadline has not passed")
        }
        Err(RpcError::TooLarge { .. }) => Err("its session was open"),
        Err(RpcError::Cancelled(_)) => need(call.cancelled, "it was not cancelled"),
        Err(RpcError::PeerFailed(_) | RpcError::SessionClosed(..)) => {
            need(!open, "its session is open")
        }
        Err(RpcError::ResponseTooLarge { size }) => need(
            size == u32::from(call.terms.answer_len) && size as usize > call.terms.room,
            "the response fits",
        ),
        Err(RpcError::Rejected(code, _)) => need(may_reject(call, code), "no reason to reject"),
    }
}

fn may_reject(call: &CallRecord, code: ErrorCode) -> bool {
    use super::host::{BACKGROUND, BATCH, NESTED, REJECTED, kind_is_known};
    match code {
        ErrorCode::UNKNOWN_TYPE => !kind_is_known(call.terms.kind),
        ErrorCode::RESPONSE_TOO_LARGE => {
            let has_limit = matches!(call.terms.kind, BACKGROUND | BATCH);
            let limit = if has_limit {
                call.terms.limit
            } else {
                MAX_MESSAGE
            };
            u32::from(call.terms.answer_len) > limit
        }
        // While a large request is arriving, its sender may stop, or the budget may be exhausted.
        ErrorCode::OVERLOADED => call.terms.kind == BACKGROUND || call.terms.len >= REFERRED_LEN,
        ErrorCode::NO_RESPONSE_MEMORY => call.terms.len >= REFERRED_LEN,
        ErrorCode::REFUSED => call.terms.kind == NESTED,
        // A panic ends all items of its batch.
        ErrorCode::HANDLER_FAILED => {
            call.terms.kind == BATCH
                || matches!(
                    call.terms.mode,
                    Mode::Silent | Mode::Panic | Mode::Drop | Mode::Hold
                )
        }
        // This code is wrong while the handler still keeps the request.
        ErrorCode::RESPONSE_GONE => call.answered || call.runs == 0,
        REJECTED => call.terms.mode == Mode::Reject || call.terms.kind == NESTED,
        _ => false,
    }
}
