//! Planted bugs of the control plane, one for each fault that strikes a handshake, to prove that
//! the simulator's checkers see. Only with the feature `mutants`.

dunlin_core::mutants! {
    bugs {
        /// The offer of a session whose grant was lost with its connection is not given up.
        OfferKeptAfterLoss = "offer-kept-after-loss",
        /// A grant that comes twice ends the session that the first one opened.
        SecondGrantEnds = "second-grant-ends",
        /// A grant whose channel is gone is not asked for again.
        GoneGrantRefused = "gone-grant-refused",
        /// The end of a grant that was given back, because its process restarted, ends the session
        /// that is asked for again.
        StaleEndBelieved = "stale-end-believed",
        /// A session that fails at its deadline keeps its turn.
        TurnKept = "turn-kept",
        /// Sessions do not wait for the first channel, nor for their turn.
        OfferedTogether = "offered-together",
    }
    differences {}
}
