//! Refusals: the codes with which handlers may end requests, and the codes with which Dunlin's own
//! crates end requests before any handler of the program has run (rule W13).
//!
//! A client repeats a call if the code proves that the handler did not run. Therefore, a handler
//! must not be able to send such a code, and `dunlin` does not export [`Refuse`] to programs.

use dunlin_wire::ErrorCode;

use crate::handle::Ticket;
use crate::handler::context::Cx;
use crate::handler::request::Request;

/// Ends a request for which no handler of the program has run.
pub trait Refuse {
    /// Answers with exactly `code`.
    fn refuse(self, cx: &mut Cx<'_>, code: ErrorCode);
}

impl Refuse for Request<'_> {
    fn refuse(self, cx: &mut Cx<'_>, code: ErrorCode) {
        if cx.core.sessions.is_home(self.session) {
            cx.core.server().reject(self.inbound, code);
        }
    }
}

impl Refuse for Ticket {
    fn refuse(self, cx: &mut Cx<'_>, code: ErrorCode) {
        if let Ok(inbound) = cx.kept(self) {
            cx.core.server().reject(inbound, code);
        }
    }
}

/// The code that the client gets if a handler rejects a request with `code` (rule W13).
pub const fn of_handler(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::OVERLOADED => ErrorCode::REFUSED,
        code if code.is_protocols() => ErrorCode::HANDLER_FAILED,
        code => code,
    }
}

#[cfg(test)]
mod tests;
