//! How the messages in flight are divided among sessions.

use super::{CASES, Messages};

#[test]
fn the_messages_of_all_sessions_add_up_to_the_number_in_flight() {
    for messages in CASES {
        let of_session = |session| messages.of_session(session);
        let all: usize = (0..messages.sessions).map(of_session).sum();
        assert_eq!(all, messages.inflight);
    }
}

#[test]
fn sessions_differ_by_at_most_one_message() {
    let echoes: Vec<Messages> = CASES.into_iter().filter(|it| it.echoed).collect();
    assert_eq!(echoes.len(), 1);
    let counts: Vec<usize> = (0..8).map(|it| echoes[0].of_session(it)).collect();
    assert_eq!(counts, [8, 8, 8, 8, 7, 7, 7, 7]);
}
