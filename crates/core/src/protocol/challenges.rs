//! Challenges that arrive (rule C13). Called by `protocol.rs` and by the event loop.

use crate::protocol::Core;
use crate::session::lifecycle::Report;

/// Reports a challenge for a session of this endpoint to the control plane; drops other bytes.
/// While the control plane has not taken all reports, the endpoint ignores challenges; the peer
/// will send them again.
#[cold]
#[inline(never)]
pub(crate) fn on_challenge(core: &mut Core, bytes: &[u8]) {
    if !core.context.notices.has_reports()
        && let Some(challenged) = core.sessions.challenged(bytes)
    {
        let report = Report::Challenged(challenged);
        core.context.notices.on_report(report);
    }
}
