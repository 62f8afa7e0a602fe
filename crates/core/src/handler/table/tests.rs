//! Handlers of any types, in any order.

use super::*;

fn answer<const NUMBER: u16>(numbers: &mut Vec<u16>, _: Request<'_>, _: &mut Cx<'_>) {
    numbers.push(NUMBER);
}

#[test]
fn handlers_are_found_whatever_the_order_of_their_types() {
    let mut handlers: Handlers<Vec<u16>> = Handlers::default();
    assert!(handlers.get(ReqType(0)).is_none() && handlers.fast(ReqType(9)).is_none());
    let types = [0x6b03, 0x6b00, u16::MAX, 7, 0, 0x6b10];
    for req_type in types {
        handlers.set(ReqType(req_type), Handler::Dispatch(answer::<0>));
        handlers.set_slow(ReqType(req_type), req_type == 7);
    }
    for req_type in 0..=u16::MAX {
        let is_there = types.contains(&req_type);
        assert_eq!(
            handlers.get(ReqType(req_type)).is_some(),
            is_there,
            "{req_type}"
        );
        let is_fast = is_there && req_type != 7;
        assert_eq!(
            handlers.fast(ReqType(req_type)).is_some(),
            is_fast,
            "{req_type}"
        );
    }
    assert_eq!(handlers.twice(), None);
    handlers.set(ReqType(0x6b00), Handler::Dispatch(answer::<1>));
    assert_eq!(handlers.twice(), Some(ReqType(0x6b00)));
}

#[test]
fn types_that_lie_side_by_side_need_a_short_table() {
    let mut handlers: Handlers<Vec<u16>> = Handlers::default();
    for req_type in [0x6b03, 0x6b00, 0x6b10] {
        handlers.set(ReqType(req_type), Handler::Dispatch(answer::<0>));
    }
    assert_eq!((handlers.by_type.len(), handlers.fast.len()), (17, 17));
}
