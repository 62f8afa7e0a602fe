//! The order of ends.

use super::{End, Ends, Reply};
use crate::client::Token;

fn end(number: u64) -> End {
    End {
        token: Token(number),
        result: Ok(Reply::Written(number)),
    }
}

#[test]
fn the_program_gets_ends_in_their_order() {
    let (mut ends, mut next) = (Ends::default(), 0);
    for number in 0..20 {
        ends.push(end(3 * number));
        ends.push(end(3 * number + 1));
        assert_eq!(ends.pop().map(|end| end.token), Some(Token(next)));
        next += 1;
        ends.push(end(3 * number + 2));
    }
    while let Some(end) = ends.pop() {
        assert_eq!(end.token, Token(next));
        next += 1;
    }
    assert_eq!(next, 60);
    assert!(ends.is_empty());
}
