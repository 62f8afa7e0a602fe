//! The table of sessions alone: admission, handles, and ranges of slots.

use dunlin_wire::ReqNum;

use super::*;

const HERE: EndpointNum = EndpointNum::chosen(1);

const TERMS: Terms = Terms {
    peer: PeerId(0),
    window: 8,
    data_size: 1024,
    max_message: 4096,
    credits: 32,
    first_req: ReqNum(64),
};

fn answer(window: u32, credits: u32) -> SessionOffer {
    SessionOffer {
        session: SessionNum(1),
        token: Token(2),
        window,
        credits,
        data_size: 1024,
        max_message: 4096,
        first_req: TERMS.first_req,
        keeps_code_rules: true,
    }
}

#[test]
fn there_are_never_more_sessions_than_the_limit() {
    let mut sessions = Sessions::new(2, 1, HERE);
    let first = sessions.begin(&TERMS, false, None).expect("room");
    sessions.begin(&TERMS, false, None).expect("room");
    let refused = sessions.begin(&TERMS, false, None);
    assert_eq!(refused, Err(OpenError::TooManySessions));
    sessions.end(first);
    assert_eq!(sessions.begin(&TERMS, false, None), Ok(first));
}

#[test]
fn strict_credits_keep_the_receive_queue_from_overflowing() {
    let mut sessions = Sessions::new(9, 1, HERE);
    let room = Some(4 * TERMS.credits);
    let first = sessions.begin(&TERMS, false, room).expect("room");
    sessions.begin(&TERMS, true, room).expect("room");
    let refused = sessions.begin(&TERMS, false, room);
    assert_eq!(refused, Err(OpenError::NoCredits));
    let handle = sessions.handle(first);
    let fewer = answer(8, TERMS.credits / 2);
    let narrowed = sessions.complete(handle, PeerId(0), &fewer, Nanos(1));
    assert_eq!(narrowed, Ok(false));
    let small = Terms {
        credits: TERMS.credits / 2,
        ..TERMS
    };
    sessions
        .begin(&small, false, room)
        .expect("the answer returned enough credits");
}

#[test]
fn an_ended_session_is_not_found_and_its_number_has_another_token() {
    let mut sessions = Sessions::new(9, 1, HERE);
    let index = sessions.begin(&TERMS, false, None).expect("room");
    let handle = sessions.handle(index);
    let token = sessions.end(index);
    assert_eq!(sessions.find(handle), None);
    assert_eq!(sessions.named(handle.number(), token), None);
    let again = sessions.begin(&TERMS, false, None).expect("room");
    assert_eq!(again, index);
    assert_eq!(sessions.find(handle), None);
    assert!(!sessions.at(again).has_token(token));
}

#[test]
fn a_handle_that_names_no_session_here_says_why() {
    let [mut here, mut there] = [HERE, EndpointNum::chosen(2)].map(|it| Sessions::new(9, 1, it));
    let open = |sessions: &mut Sessions| {
        let index = sessions.begin(&TERMS, false, None).expect("room");
        sessions.handle(index)
    };
    let (ours, theirs) = (open(&mut here), open(&mut there));
    // The two handles differ in nothing else.
    assert_eq!(ours.index(), theirs.index());
    assert_eq!(ours.generation(), theirs.generation());
    assert_eq!(here.check(ours), Ok(ours.index()));
    assert_eq!(here.check(theirs), Err(HandleError::WrongEndpoint));
    assert_eq!(here.find(theirs), None);
    assert_eq!(here.check(Session::NONE), Err(HandleError::Ended));
    here.end(ours.index());
    assert_eq!(here.check(ours), Err(HandleError::Ended));
    assert_eq!(there.check(ours), Err(HandleError::WrongEndpoint));
}

#[test]
fn an_index_whose_generations_are_used_up_stays_unused() {
    let mut sessions = Sessions::new(2, 1, HERE);
    let mut known = std::collections::BTreeSet::new();
    for _ in 0..u16::MAX {
        let index = sessions.begin(&TERMS, false, None).expect("room");
        assert_eq!(index, SessionIdx(0));
        assert!(known.insert(sessions.handle(index)), "a handle was reused");
        sessions.end(index);
    }
    for generation in [1, 2] {
        let index = sessions.begin(&TERMS, false, None).expect("room");
        assert_eq!(
            sessions.handle(index),
            Session::new(SessionIdx(1), generation, HERE)
        );
        sessions.end(index);
    }
    assert!(sessions.are_slots_known() && sessions.live() == 0);
}

#[test]
fn an_answer_must_fit_its_offer() {
    let mut sessions = Sessions::new(9, 1, HERE);
    let index = sessions.begin(&TERMS, false, None).expect("room");
    let handle = sessions.handle(index);
    for wrong in [
        answer(16, 32),
        answer(8, 33),
        answer(3, 32),
        SessionOffer {
            first_req: ReqNum(0),
            ..answer(8, 32)
        },
    ] {
        let refused = sessions.complete(handle, PeerId(0), &wrong, Nanos(1));
        assert_eq!(refused, Err(OpenError::BadOffer), "{wrong:?}");
    }
    let completed = sessions.complete(handle, PeerId(0), &answer(2, 32), Nanos(1));
    assert_eq!(completed, Ok(true), "the session gets other slots");
    let again = sessions.complete(handle, PeerId(0), &answer(2, 32), Nanos(1));
    assert_eq!(again, Err(OpenError::NoSession));
}

#[test]
fn slot_ranges_of_living_sessions_never_overlap() {
    let mut sessions = Sessions::new(64, 1, HERE);
    let mut live: Vec<SessionIdx> = Vec::new();
    for round in 0..200_u32 {
        if round % 3 == 2 {
            sessions.end(live.remove(round as usize % live.len()));
        } else if live.len() < 60 {
            let window = 1 << (round % 7);
            let terms = Terms { window, ..TERMS };
            live.push(sessions.begin(&terms, false, None).expect("room"));
        }
        let mut taken = vec![false; sessions.slot_count()];
        for at in live
            .iter()
            .flat_map(|index| sessions.at(*index).slots().iter())
        {
            assert!(!std::mem::replace(&mut taken[at.index()], true));
        }
    }
}
