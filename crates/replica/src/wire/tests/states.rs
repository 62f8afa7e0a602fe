//! Members of a cluster, and the states of replicas.

use super::*;

/// The state of a leader with two followers, one of which is being sent a snapshot.
fn leading() -> Status {
    let follower = |id, matched, sent, size| Follower {
        id,
        matched,
        sent,
        size,
    };
    Status {
        id: 2,
        role: Role::Leader,
        term: 4,
        leader: 2,
        last: 9,
        committed: 8,
        applied: 7,
        first: 1,
        keys: 5,
        items: 0,
        members: Some(Roster::first(&members())),
        followers: vec![follower(1, 8, 0, 0), follower(3, 0, 20, 30)],
    }
}

#[test]
fn members_and_status_have_their_bytes() {
    let list = "03000000".to_owned()
        + &word(1)
        + "02000000"
        + "6831"
        + &word(2)
        + "02000000"
        + "6832"
        + &word(3)
        + "02000000"
        + "6833"
        + &word(0);
    let bytes = members().to_bytes();
    assert_eq!(hex(&bytes), "01".to_owned() + &list);
    assert_eq!(Members::decode(&bytes), Ok(members()));
    let status = leading();
    let list = hex(&members().cluster().to_le_bytes())
        + "03000000"
        + &word(1)
        + "010000"
        + "02000000"
        + "6831"
        + &word(2)
        + "010000"
        + "02000000"
        + "6832"
        + &word(3)
        + "010000"
        + "02000000"
        + "6833"
        + "02000000"
        + &[1, 8, 0, 0, 3, 0, 20, 30].map(word).concat();
    let words: String = [2, 4, 2, 9, 8, 7, 1, 5, 0].map(word).concat();
    assert_eq!(
        hex(&status.to_bytes()),
        "0103000000000000".to_owned() + &words + &list
    );
    let joining = Roster::first(&members()).for_joining(Member {
        id: 7,
        address: "h7".to_owned(),
    });
    assert!(!joining.has_voters() && joining.get(7).is_some());
    assert_eq!(Roster::decode(&joining.to_bytes()), Ok(joining));
    let restored = Status {
        items: 77,
        ..Status::idle(6)
    };
    let begun = members().begin_with(77);
    assert_eq!(Members::decode(&begun.to_bytes()), Ok(begun));
    for status in [status, restored, Status::idle(6)] {
        assert_eq!(Status::decode(&status.to_bytes()), Ok(status));
    }
}

#[test]
fn a_follower_has_no_more_of_a_snapshot_than_there_is() {
    let follower = |sent| Follower {
        id: 1,
        matched: 0,
        sent,
        size: 30,
    };
    let decoded = |sent| {
        let status = Status {
            role: Role::Leader,
            members: Some(Roster::first(&members())),
            followers: vec![follower(sent)],
            ..Status::idle(2)
        };
        Status::decode(&status.to_bytes())
    };
    assert!(decoded(30).is_ok());
    assert_eq!(decoded(31), Err(Malformed));
}
