//! Planted bugs, to prove that the simulator's checkers find them (design §13); planted
//! differences, which break no promise, so that only a comparison of two runs finds them; and
//! planted breaches of laws, which only the endpoint's own checks find. They exist only with the
//! feature `mutants`.

/// Makes the enum `Mutant` of a crate's planted bugs, differences and breaches.
#[macro_export]
macro_rules! mutants {
    (
        bugs { $($(#[$bug_doc:meta])* $bug:ident = $bug_text:literal,)* }
        differences { $($(#[$doc:meta])* $name:ident = $text:literal,)* }
        breaches {
            $($(#[$breach_doc:meta])* $breach:ident = $breach_text:literal, breaks $law:ident;)*
        }
    ) => {
        /// A planted bug, difference or breach.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Mutant {
            $($(#[$bug_doc])* $bug,)*
            $($(#[$doc])* $name,)*
            $($(#[$breach_doc])* $breach,)*
        }

        impl Mutant {
            /// Every planted bug: a checker must find each.
            pub const ALL: &[Self] = &[$(Self::$bug),*];

            /// Every planted difference: checkers find none of them, a comparison must.
            pub const DIFFERENCES: &[Self] = &[$(Self::$name),*];

            /// Every planted breach, with the law that it breaks: only the endpoint's own check of
            /// that law finds it.
            pub const BREACHES: &[(Self, $crate::Law)] = &[$((Self::$breach, $crate::Law::$law)),*];

            /// The name on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$bug => $bug_text,)*
                    $(Self::$name => $text,)*
                    $(Self::$breach => $breach_text,)*
                }
            }

            /// The bug, difference or breach with this name.
            pub fn from_name(name: &str) -> Option<Self> {
                let breaches = Self::BREACHES.iter().map(|(mutant, _)| mutant);
                let all = Self::ALL.iter().chain(Self::DIFFERENCES).chain(breaches);
                all.copied().find(|mutant| mutant.name() == name)
            }
        }
    };
}

mutants! {
    bugs {
        /// A msgbuf goes back to its pool although the transport still reads it.
        ReleasedBeforeDone = "released-before-done",
        /// The server rewrites a response while the transport still reads an earlier transmission
        /// of it.
        SkippedFlush = "skipped-flush",
        /// A client slot is used again before the server has answered its zombie.
        SlotReusedEarly = "slot-reused-early",
        /// A server mistakes a duplicate for a new request.
        DuplicateCheckDropped = "duplicate-check-dropped",
        /// An error answer does not give its credit back.
        CreditLeaked = "credit-leaked",
        /// Packets are accepted whatever their token is.
        TokenIgnored = "token-ignored",
        /// A session that waits for a slot is not woken when one is free.
        LostWakeup = "lost-wakeup",
        /// After `response_hold` a duplicate runs the handler again.
        RunAgainAfterHold = "run-again-after-hold",
        /// Cancelling frees the slot at once.
        FreeOnCancel = "free-on-cancel",
        /// Request numbers stop at 2³² − 1 instead of wrapping.
        WrongWrap = "wrong-wrap",
        /// A timer acts on a request that was answered before.
        TimerAfterCompletion = "timer-after-completion",
        /// A packet of an earlier session with the same number is accepted.
        StaleIncarnation = "stale-incarnation",
        /// A higher request number is taken as the slot's new position.
        FutureAccepted = "future-accepted",
        /// A failed peer's calls are forgotten instead of completed.
        LostCompletion = "lost-completion",
        /// The client believes a CR that names packets which have not been sent.
        FutureCreditAccepted = "future-credit-accepted",
        /// The bitmap of a CR is read as if it began one packet later.
        BitmapOffByOne = "bitmap-off-by-one",
        /// If the last packet of a request is full, it is sent without its data.
        WrongLastPacket = "wrong-last-packet",
        /// A request that is given up before it is complete stays in the endpoint's budget.
        BudgetLeaked = "budget-leaked",
        /// A large request counts as sent when its first packet has been sent.
        ReusedWhileSent = "reused-while-sent",
        /// A lost packet of a request is never sent again.
        LostNotResent = "lost-not-resent",
        /// A closed session still takes packets on the common path.
        LimitLeftAfterClose = "limit-left-after-close",
        /// A call whose request is still being sent ends on the common path.
        AwaitedAmidTransfer = "awaited-amid-transfer",
        /// A staged packet counts although its message has not been copied.
        LaneHalfFilled = "lane-half-filled",
        /// A short packet that follows a queued one is staged, and leaves before it.
        LaneOvertakes = "lane-overtakes",
        /// After a panic on the common path, no request fails.
        PanicMisattributed = "panic-misattributed",
        /// A peer whose endpoint is in a handler counts as failed.
        AbsenceIsFailure = "absence-is-failure",
        /// The handle of a request that is over names a later request.
        GenerationReused = "generation-reused",
    }
    differences {
        /// A slow request is acknowledged one nanosecond later.
        OneLater = "one-nanosecond-later",
        /// A call that waits for a slot or a credit is counted twice.
        CountedTwice = "counted-twice",
        /// Calls that end without an answer end in reverse order.
        EndingsReversed = "endings-reversed",
        /// A request that is sent again lacks the flag for that.
        OtherByte = "other-byte",
        /// Each response takes a second msgbuf until it has left.
        SpareBuffer = "spare-buffer",
        /// A session that is paced still sends short requests on the common path.
        PlainThoughPaced = "plain-though-paced",
        /// Staged packets leave again with the next burst.
        LaneKept = "lane-kept",
        /// A call is recorded as one nanosecond longer.
        MeasuredLonger = "measured-longer",
        /// On the common path, an answer's residence counts for nothing.
        ResidenceIgnored = "residence-ignored",
        /// The client cancels a request, and the handler gets no report.
        NotReported = "given-up-not-reported",
    }
    breaches {
        /// A session that has asked for a sample takes no more short requests on the common path.
        SampleUnsettled = "sample-unsettled", breaks Prepared;
        /// A call whose request has arrived in parts does not await its answer on the common path.
        AwaitedLost = "awaited-lost", breaks Awaited;
        /// A call that was cancelled still awaits its answer on the common path.
        AwaitedAfterCancel = "awaited-after-cancel", breaks Awaited;
        /// Each large request takes a second transfer, which nothing ends.
        TransferLeaked = "transfer-leaked", breaks Transfers;
        /// A session that ends leaves its flow.
        FlowLeaked = "flow-leaked", breaks Flows;
        /// A session that ends leaves a credit promised.
        PromiseLeaked = "promise-leaked", breaks Promises;
        /// A session that ends does not return its slots.
        SlotsLeaked = "slots-leaked", breaks SlotRanges;
        /// When a session ends, an entry of the table of requests is lost.
        RequestLeaked = "request-leaked", breaks Requests;
        /// When a session ends, an entry of the table of calls is lost.
        CallLeaked = "call-leaked", breaks Calls;
        /// The answers of a slot are prepared for shorter packets.
        TemplateStale = "template-stale", breaks Answers;
        /// When a session ends, a place for large requests is lost.
        PlaceLeaked = "place-leaked", breaks Receiving;
        /// A session without waiting calls says that calls wait, until its next answer.
        BacklogMarked = "backlog-marked", breaks Backlog;
        /// A session with calls in flight marks a slot as taken that has no call, until the next
        /// iteration.
        SlotHidden = "slot-hidden", breaks Slots;
        /// A session with calls in flight lacks a credit that no call holds, until the next
        /// iteration.
        CreditHidden = "credit-hidden", breaks Credits;
    }
}
