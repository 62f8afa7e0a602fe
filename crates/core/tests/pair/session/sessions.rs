//! Sessions: negotiation, limits, events, and reuse of numbers.

use dunlin_core::transport::PeerId;
use dunlin_core::{
    CallErrorKind, CloseReason, Config, Nanos, OpenError, Report, RpcError, SessionEvent,
    SessionOptions, Tag,
};
use dunlin_testkit::pair::*;
use dunlin_wire::Ran;

#[test]
fn both_sides_learn_of_a_session() {
    let mut pair = Pair::new();
    pair.run();
    assert_eq!(
        pair.client.rpc.app().events,
        [SessionEvent::Connected(pair.session)]
    );
    assert_eq!(
        pair.server.rpc.app().events,
        [SessionEvent::Accepted(pair.back)]
    );
}

#[test]
fn calls_before_the_answer_wait_for_it() {
    let mut pair = Pair::new();
    let options = SessionOptions::default();
    let session = pair.client.open(&options);
    let request = pair.client.rpc.buf(1).unwrap();
    let response = pair.client.rpc.buf(1).unwrap();
    pair.client
        .rpc
        .call(session, ECHO, request, response, Tag(1))
        .unwrap();
    pair.run();
    assert!(pair.done().is_empty());
    let (_, answer) = pair.accept(session);
    let answer_it = |pair: &mut Pair| {
        pair.client
            .rpc
            .lifecycle()
            .opened(session, PeerId(7), &answer)
    };
    answer_it(&mut pair).unwrap();
    pair.run();
    assert_eq!(pair.done().len(), 1);
    assert_eq!(answer_it(&mut pair), Err(OpenError::NoSession));
    pair.assert_clean();
}

#[test]
fn a_refused_session_ends_its_calls() {
    let mut pair = Pair::new();
    let session = pair.client.open(&SessionOptions::default());
    let request = pair.client.rpc.buf(1).unwrap();
    let response = pair.client.rpc.buf(1).unwrap();
    pair.client
        .rpc
        .call(session, ECHO, request, response, Tag(1))
        .unwrap();
    assert!(
        pair.client
            .rpc
            .lifecycle()
            .close(session, CloseReason::Refused)
    );
    assert!(
        !pair
            .client
            .rpc
            .lifecycle()
            .close(session, CloseReason::Refused)
    );
    pair.run();
    assert_eq!(
        pair.done(),
        [(
            Tag(1),
            Err(RpcError::SessionClosed(CloseReason::Refused, Ran::No))
        )]
    );
    pair.assert_clean();
}

#[test]
fn the_server_may_lower_window_credits_and_sizes() {
    let mut pair = Pair::new();
    let session = pair.client.open(&options(16, 64));
    let offer = pair.client.rpc.lifecycle().offer_of(session).unwrap();
    let lower = dunlin_core::SessionOffer {
        window: 2,
        credits: 5,
        max_message: 100,
        ..offer
    };
    let (_, answer) = pair
        .server
        .rpc
        .lifecycle()
        .accept(PeerId(7), &lower)
        .unwrap();
    pair.client
        .rpc
        .lifecycle()
        .opened(session, PeerId(7), &answer)
        .unwrap();
    let info = pair.client.rpc.session_info(session).unwrap();
    assert_eq!(
        (
            info.window,
            info.credits,
            info.credit_limit,
            info.max_message
        ),
        (2, 5, 5, 100)
    );
    let higher = dunlin_core::SessionOffer {
        window: 32,
        ..answer
    };
    let again = pair.client.open(&options(16, 64));
    assert_eq!(
        pair.client
            .rpc
            .lifecycle()
            .opened(again, PeerId(7), &higher),
        Err(OpenError::BadOffer)
    );
}

#[test]
fn absurd_offers_are_refused() {
    let mut pair = Pair::new();
    let offer = pair.client.rpc.lifecycle().offer_of(pair.session).unwrap();
    let absurd = [
        dunlin_core::SessionOffer { window: 3, ..offer },
        dunlin_core::SessionOffer { window: 0, ..offer },
        dunlin_core::SessionOffer {
            window: 1 << 31,
            ..offer
        },
        dunlin_core::SessionOffer {
            credits: 0,
            ..offer
        },
        dunlin_core::SessionOffer {
            credits: u32::MAX,
            ..offer
        },
        dunlin_core::SessionOffer {
            data_size: 0,
            ..offer
        },
        dunlin_core::SessionOffer {
            max_message: 0,
            ..offer
        },
        dunlin_core::SessionOffer {
            first_req: dunlin_wire::ReqNum(3),
            ..offer
        },
    ];
    for offer in absurd {
        assert_eq!(
            pair.server.rpc.lifecycle().accept(PeerId(7), &offer),
            Err(OpenError::BadOffer),
            "{offer:?}"
        );
    }
    assert_eq!(pair.server.rpc.session_count(), 1);
}

#[test]
fn sessions_have_a_limit_and_their_numbers_are_used_again_with_other_tokens() {
    let config = Config {
        max_sessions: 3,
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    let mut tokens = Vec::new();
    for _ in 0..10 {
        let a = pair.client.open(&SessionOptions::default());
        let b = pair.client.open(&options(64, 1));
        assert_eq!(
            pair.client.rpc.lifecycle().open(&SessionOptions::default()),
            Err(OpenError::TooManySessions)
        );
        tokens.push(pair.client.rpc.lifecycle().offer_of(a).unwrap().token.0);
        let ended = [a, b].map(|session| pair.client.rpc.disconnect(session));
        assert_eq!(ended, [Ok(()); 2]);
        assert!(pair.client.rpc.session_info(a).is_err());
        let request = pair.client.rpc.buf(1).unwrap();
        let response = pair.client.rpc.buf(1).unwrap();
        let refused = pair
            .client
            .rpc
            .call(a, ECHO, request, response, Tag(1))
            .unwrap_err();
        assert_eq!(refused.kind, CallErrorKind::NoSession);
    }
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 10);
    pair.assert_clean();
}

#[test]
fn strict_credits_refuse_sessions_that_the_receive_queue_cannot_hold() {
    let config = Config {
        strict_credits: true,
        ..Config::default()
    };
    // 1024 entries, 2 × 64 for each session: eight fit, and the pair has one already.
    let mut pair = Pair::with(config, options(8, 64));
    let options = options(8, 64);
    let opened: Vec<_> = (0..7).map(|_| pair.client.open(&options)).collect();
    assert_eq!(
        pair.client.rpc.lifecycle().open(&options),
        Err(OpenError::NoCredits)
    );
    pair.client.rpc.disconnect(opened[3]).unwrap();
    assert!(pair.client.rpc.lifecycle().open(&options).is_ok());
}

#[test]
fn disconnecting_inside_a_handler_is_safe() {
    let mut pair = Pair::new();
    pair.server.rpc.on(HOLD, |_, req, cx| {
        assert!(cx.disconnect(req.session()).is_ok());
        req.reply_bytes(cx, b"too late");
    });
    for tag in 0..4 {
        pair.call(HOLD, b"x", tag);
    }
    pair.run();
    assert_eq!(pair.server.rpc.session_count(), 0);
    let Some(Report::Closed(closed)) = pair.server.rpc.lifecycle().take_report() else {
        panic!("no session has ended");
    };
    assert_eq!(
        (closed.session, closed.reason),
        (pair.back, CloseReason::Disconnected)
    );
    pair.client
        .rpc
        .lifecycle()
        .close(pair.session, CloseReason::Disconnected);
    pair.run();
    assert_eq!(pair.done().len(), 4);
    pair.assert_clean();
}

#[test]
fn packets_of_an_earlier_session_with_the_same_number_are_dropped() {
    let mut pair = Pair::new();
    pair.call(ECHO, b"old", 1);
    pair.step_client();
    let old: Vec<_> = pair.client.out.borrow_mut().drain(..).collect();
    pair.server.rpc.disconnect(pair.back).unwrap();
    pair.client
        .rpc
        .lifecycle()
        .close(pair.session, CloseReason::Disconnected);
    let session = pair.client.open(&SessionOptions::default());
    let (back, answer) = pair.accept(session);
    assert_eq!(back.number(), pair.back.number());
    pair.client
        .rpc
        .lifecycle()
        .opened(session, PeerId(7), &answer)
        .unwrap();
    pair.server.inbox.borrow_mut().extend(old);
    pair.run();
    assert_eq!(pair.ran(), 0);
    assert_eq!(pair.server.rpc.counters().drops.token, 1);
    pair.assert_clean();
}

#[test]
fn a_session_that_waits_can_get_another_token() {
    let mut pair = Pair::new();
    let open = pair.session;
    let mut lifecycle = pair.client.rpc.lifecycle();
    let session = lifecycle.open(&SessionOptions::default()).unwrap();
    let old = lifecycle.offer_of(session).unwrap();
    let token = lifecycle.rename(session).unwrap();
    assert_ne!(token, old.token);
    let offer = lifecycle.offer_of(session).unwrap();
    assert_eq!(offer, dunlin_core::SessionOffer { token, ..old });
    assert_eq!(lifecycle.session_named(old.session, old.token), None);
    assert_eq!(lifecycle.session_named(old.session, token), Some(session));
    // An open session keeps its token, because its packets carry the token.
    assert_eq!(lifecycle.rename(open), None);
}

#[cfg(feature = "mutants")]
#[test]
fn a_broken_law_ends_the_sessions_once_and_the_endpoint_goes_on() {
    for check in [dunlin_core::Check::Event, dunlin_core::Check::Sweep] {
        a_broken_law_ends_the_sessions_once(check);
    }
}

#[cfg(feature = "mutants")]
fn a_broken_law_ends_the_sessions_once(check: dunlin_core::Check) {
    let config = Config {
        check,
        mutant: Some(dunlin_core::mutant::Mutant::CallLeaked),
        ..Config::default()
    };
    let sweep = config.response_hold;
    let mut pair = Pair::checked_as(config);
    let server = &mut pair.server.rpc;
    let other = server.lifecycle().open(&SessionOptions::default()).unwrap();
    assert!(
        server.disconnect(other).is_ok(),
        "the session ends, which breaks the law"
    );
    pair.call(ECHO, b"x", 1);
    pair.run();
    // A sweep checks one session, or the sums over all of them, in turn: here, of the two sessions
    // that the server had.
    for _ in 0..3 {
        pair.pass(sweep);
    }
    let server = &mut pair.server.rpc;
    let reason = CloseReason::Inconsistent(dunlin_core::Law::Calls);
    let session = pair.back;
    let ended = SessionEvent::Closed { session, reason };
    assert!(
        server.app().events.contains(&ended),
        "{:?}",
        server.app().events
    );
    assert_eq!(server.counters().broken_laws, 1);

    let offer = server.lifecycle().offer_of(pair.back);
    assert!(offer.is_none(), "the session has ended");
    let (client, options) = (&mut pair.client.rpc, SessionOptions::default());
    let again = client.lifecycle().open(&options).unwrap();
    let offer = client.lifecycle().offer_of(again).unwrap();
    let (_, answer) = server.lifecycle().accept(PeerId(7), &offer).unwrap();
    let opened = client.lifecycle().opened(again, PeerId(7), &answer);
    assert_eq!(opened, Ok(()));
    pair.session = again;
    pair.call(ECHO, b"y", 2);
    pair.run();
    pair.pass(sweep);
    assert_eq!(pair.done().last().unwrap().0, Tag(2));
    assert_eq!(pair.server.rpc.session_count(), 1);
    assert_eq!(pair.server.rpc.counters().broken_laws, 1);
}

#[cfg(feature = "mutants")]
#[test]
fn a_law_that_breaks_without_a_packet_is_noticed_in_the_next_iteration() {
    let config = Config {
        mutant: Some(dunlin_core::mutant::Mutant::CallLeaked),
        ..Config::default()
    };
    let mut pair = Pair::with(config, SessionOptions::default());
    pair.run();
    let server = &mut pair.server.rpc;
    let other = server.lifecycle().open(&SessionOptions::default()).unwrap();
    assert!(server.disconnect(other).is_ok(), "which breaks the law");
    assert_eq!(server.counters().broken_laws, 0);
    server.run_once();
    assert_eq!(server.counters().broken_laws, 1);
}

#[test]
fn wrong_options_of_our_own_are_named_with_their_range() {
    let mut pair = Pair::new();
    let [window, credits] = [options(3, 64), options(16, 0)].map(|wrong| {
        pair.client
            .rpc
            .lifecycle()
            .open(&wrong)
            .unwrap_err()
            .to_string()
    });
    assert_eq!(
        window,
        "`session.window` is 3; use a power of two from 1 to 64"
    );
    assert!(
        credits.starts_with("`session.credits` is 0; use 1 to "),
        "{credits}"
    );
}

/// An endpoint with many sessions measures as many round trips in total as one with eight.
#[test]
fn sessions_of_a_crowd_ask_for_fewer_round_trips() {
    let samples = |sessions: u32| {
        let mut pair = Pair::new();
        for _ in 1..sessions {
            let session = pair.client.open(&SessionOptions::default());
            pair.complete(session);
        }
        pair.run();
        for tag in 0..3_000 {
            pair.call(ECHO, b"x", tag);
            pair.clock.pass(Nanos(1_000));
            pair.run();
        }
        assert_eq!(pair.done().len(), 3_000);
        pair.client.rpc.counters().rtt_samples
    };
    assert!(
        (29..=31).contains(&samples(8)),
        "a session asks every 100 µs"
    );
    assert!(
        (3..=4).contains(&samples(80)),
        "a session asks every millisecond"
    );
}
