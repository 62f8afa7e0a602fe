//! Planted bugs of a channel, to prove that the checkers of its driver find them. Only with the
//! feature `mutants`.

dunlin_core::mutants! {
    bugs {
        /// A call that may have run is repeated, idempotent or not.
        RepeatAfterLostAnswer = "repeat-after-lost-answer",
        /// A handler that ran without memory for its response counts as one that did not run.
        NoMemoryRepeated = "no-memory-repeated",
        /// The machine believes any server that claims to have refused a request before the
        /// handler, even a server that does not keep the rules of codes.
        AnyServerBelieved = "any-server-believed",
        /// A server that drains gets new calls.
        DrainingPicked = "draining-picked",
        /// A server that drains is disconnected although calls run there.
        DrainCutsOff = "drain-cuts-off",
        /// The end of a link is forgotten, so its address is picked forever.
        DeadPicked = "dead-picked",
        /// A response is delivered although its call was dropped.
        DeliveredAfterDrop = "delivered-after-drop",
        /// Repeats take nothing from the budget.
        BudgetIgnored = "budget-ignored",
        /// The number of attempts at a call has no bound.
        EndlessAttempts = "endless-attempts",
        /// Each attempt gets the whole deadline.
        DeadlineRestarts = "deadline-restarts",
        /// A call that waits for a server forgets its deadline.
        DeadlineForgotten = "deadline-forgotten",
        /// A call that waits for a server waits forever.
        PatienceForgotten = "patience-forgotten",
        /// When a server becomes ready, only the first of the waiting calls uses it.
        LostWakeup = "lost-wakeup",
        /// The attempts of a cancelled call count as ended before their end is reported.
        CancelledNotCounted = "cancelled-not-counted",
        /// Calls that may not run twice are hedged.
        AnyCallHedged = "any-call-hedged",
        /// A hedge is not cancelled when the other attempt has its answer.
        HedgeLeft = "hedge-left",
        /// A notification that has left is repeated by the rules of other calls.
        NotificationRepeated = "notification-repeated",
        /// The end of an attempt counts for a later attempt with the same index.
        StaleEndBelieved = "stale-end-believed",
        /// An address that failed twice is not tried again.
        ReconnectForgotten = "reconnect-forgotten",
        /// An address that is no longer listed is still picked.
        UnlistedPicked = "unlisted-picked",
        /// A call's failure says only whether its last attempt ran, even if an earlier one has run.
        LastAttemptAlone = "last-attempt-alone",
        /// Round robin leaves the last server out.
        TurnsSkipLast = "turns-skip-last",
        /// Of two servers, the one that was drawn first gets the call, however busy it is.
        FirstOfTwoPicked = "first-of-two-picked",
        /// Calls that are outstanding at a slow server count like those at any other one.
        PaceIgnored = "pace-ignored",
        /// One of the two drawn servers is always the first in the list. Shares differ only while
        /// calls are few.
        FirstAlwaysDrawn = "first-always-drawn",
        /// A key belongs to the server at a place in the list, so that most keys move when another
        /// server leaves.
        KeyIsPosition = "key-is-position",
        /// Servers often have equal weights for a key, and the last of them owns it.
        WeightsCoarse = "weights-coarse",
        /// Of the channels that wait for a shared session, the last one gets the next turn.
        LastWaitsLeast = "last-waits-least",
        /// The first channel that is dropped ends the sessions that others share with it.
        FirstDropEndsAll = "first-drop-ends-all",
        /// The sessions of a trunk stay when its last channel is dropped.
        SessionsOutlive = "sessions-outlive",
        /// The end of an attempt gives no turn to the channels that wait for its session.
        RoomForgotten = "room-forgotten",
    }
    differences {}
    breaches {}
}

impl Mutant {
    /// Whether the bug only changes which servers get how many calls. A single call does not show
    /// it, so a judge has to count.
    pub const fn is_of_shares(self) -> bool {
        matches!(
            self,
            Self::TurnsSkipLast
                | Self::FirstOfTwoPicked
                | Self::PaceIgnored
                | Self::FirstAlwaysDrawn
                | Self::KeyIsPosition
                | Self::WeightsCoarse
        )
    }

    /// Whether the bug is in the trunks, which need several channels.
    pub const fn is_of_trunks(self) -> bool {
        matches!(
            self,
            Self::LastWaitsLeast
                | Self::FirstDropEndsAll
                | Self::SessionsOutlive
                | Self::RoomForgotten
        )
    }
}
