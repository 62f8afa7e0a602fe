//! Planted bugs of the control plane, one for each fault of a handshake, to prove that the
//! simulator's checkers find them. They exist only with the feature `mutants`.

dunlin_core::mutants! {
    bugs {
        /// The offer of a session is kept although its grant was lost with the connection.
        OfferKeptAfterLoss = "offer-kept-after-loss",
        /// A session whose grant may have been lost is asked for again under its old token.
        TokenKept = "token-kept",
        /// A grant that comes twice ends the session that the first one opened.
        SecondGrantEnds = "second-grant-ends",
        /// A grant whose channel is gone is not asked for again.
        GoneGrantRefused = "gone-grant-refused",
        /// A grant that was given back is asked for again under its old token. So when the first
        /// grant ends, because its process restarted, the second ends too.
        StaleEndBelieved = "stale-end-believed",
        /// A session that fails at its deadline keeps its turn.
        TurnKept = "turn-kept",
        /// A grant that cannot be completed is not given back if its deadline has passed.
        LateGrantKept = "late-grant-kept",
        /// Sessions do not wait for the first channel, nor for their turn.
        OfferedTogether = "offered-together",
        /// A session is granted before the other side has proven its address.
        ProofNotAwaited = "proof-not-awaited",
        /// The control thread does not answer inquiries for an endpoint whose thread is in a
        /// handler.
        AbsenceNotSaid = "absence-not-said",
    }
    differences {}
    breaches {}
}
