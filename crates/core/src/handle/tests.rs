//! Handles alone: their parts do not mix, and numbers of endpoints are given once.

use super::*;

#[test]
fn the_parts_of_a_session_come_out_as_they_went_in() {
    let indexes = [0, 1, (1 << 24) - 1].map(SessionIdx);
    let numbers = [1, 2, EndpointNum::MAX].map(EndpointNum::chosen);
    let mut seen = std::collections::BTreeSet::from([Session::NONE]);
    for index in indexes {
        for generation in [1, 2, Session::LAST_GENERATION] {
            for number in numbers {
                let session = Session::new(index, generation, number);
                assert_eq!((session.index(), session.generation()), (index, generation));
                assert_eq!(session.number(), SessionNum(index.0));
                for other in numbers {
                    assert_eq!(session.is_of(other), other == number);
                }
                assert!(
                    seen.insert(session),
                    "{session:?} is already the name of another session"
                );
            }
        }
    }
}

#[test]
fn a_placeholder_belongs_to_no_endpoint() {
    for number in [1, 2, EndpointNum::MAX].map(EndpointNum::chosen) {
        assert!(!Session::NONE.is_of(number));
        assert_eq!(Session::NONE.stray(number), HandleError::Ended);
    }
}

#[test]
fn a_ticket_works_only_at_its_endpoint() {
    let id = RequestId {
        index: RequestIdx(3),
        generation: 1,
        req: ReqNum(9),
    };
    let [here, there] = [1, 2].map(EndpointNum::chosen);
    let ticket = Ticket::new(id, here);
    assert_eq!(ticket.at(here), Ok(id));
    assert_eq!(ticket.at(there), Err(HandleError::WrongEndpoint));
}

#[test]
fn numbers_are_given_once_and_run_out() {
    let next = AtomicU32::new(EndpointNum::MAX - 1);
    assert_eq!(take_from(&next), Some(EndpointNum(EndpointNum::MAX - 1)));
    assert_eq!(take_from(&next), Some(EndpointNum(EndpointNum::MAX)));
    for _ in 0..3 {
        assert_eq!(take_from(&next), None, "the first numbers are in use");
    }
}

#[test]
fn the_number_of_an_endpoint_that_was_not_made_is_given_again() {
    let next = AtomicU32::new(EndpointNum::MAX - 1);
    for _ in 0..3 {
        let made: Option<Result<(), _>> = take_from_for(&next, Err);
        assert_eq!(made, Some(Err(EndpointNum(EndpointNum::MAX - 1))));
    }
    let fails_later = |number| {
        assert_eq!(take_from(&next), Some(EndpointNum(EndpointNum::MAX)));
        Err::<(), _>(number)
    };
    assert!(take_from_for(&next, fails_later).is_some_and(|made| made.is_err()));
    let made: Option<Result<_, ()>> = take_from_for(&next, Ok);
    assert_eq!(made, None, "the last number is in use");
}

#[test]
fn threads_never_take_the_same_number() {
    let take = || -> Vec<_> { (0..1000).map(|_| EndpointNum::take()).collect() };
    let mut all: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        let taken = threads.into_iter().map(|thread| thread.join());
        taken
            .flat_map(|it| it.expect("the thread does not panic"))
            .collect()
    });
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 4000);
    assert!(all.iter().all(Option::is_some));
}

#[test]
#[should_panic(expected = "1 to 2^24 - 1")]
fn the_number_that_means_no_endpoint_cannot_be_chosen() {
    EndpointNum::chosen(0);
}
