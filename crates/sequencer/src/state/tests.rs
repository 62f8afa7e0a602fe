//! The state that a restart reads after a crash, and files that it refuses.

use super::*;

fn state(generation: u64, limit: u64) -> State {
    State {
        epoch: 3,
        generation,
        process: 77,
        lease_ns: 1000,
        raise: 50,
        before: 0,
        sequences: vec![("a".parse().expect("it is a name"), limit)],
    }
}

/// A file with these two slots.
fn file(first: &State, second: &State) -> Vec<u8> {
    [first.encode(), second.encode()].concat()
}

#[test]
fn the_newer_slot_counts() {
    let (old, new) = (state(4, 100), state(5, 140));
    assert_eq!(State::recover(&file(&old, &new)), Ok(new.clone()));
    assert_eq!(State::recover(&file(&new, &old)), Ok(new.clone()));
    assert_eq!(State::recover(&new.encode_file()), Ok(new));
}

#[test]
fn a_damaged_slot_makes_no_number_come_twice() {
    let (old, new) = (state(4, 100), state(5, 140));
    let whole = file(&old, &new);
    // Any used byte of either slot, and one unused byte.
    for at in (0..80).chain([SLOT - 1]) {
        for bad in [at, SLOT + at] {
            let mut bytes = whole.clone();
            bytes[bad] ^= 0x40;
            let recovered = State::recover(&bytes);
            let version = bad % SLOT == 4 || bad % SLOT == 5;
            if version {
                assert!(matches!(recovered, Err(Damage::Newer(_))), "byte {bad}");
                continue;
            }
            let limit = recovered.expect("one slot is whole").sequences[0].1;
            // Whichever slot is lost, no number below the higher limit is given again.
            let expected = if bad < SLOT { 190 } else { 150 };
            assert_eq!(limit, expected, "byte {bad}");
        }
    }
}

#[test]
fn a_torn_slot_is_ignored() {
    let (old, new) = (state(4, 100), state(5, 140));
    // A write of the new slot over an even older one has stopped after some bytes.
    for len in [0, 1, 8, 17, 20, 56, 58] {
        let mut bytes = file(&state(3, 90), &old);
        bytes[..len].copy_from_slice(&new.encode()[..len]);
        let limit = State::recover(&bytes).expect("one slot is whole").sequences[0].1;
        assert!(limit == 150 || (len <= 8 && limit == 100), "{len}: {limit}");
    }
}

#[test]
fn damage_is_named() {
    let whole = file(&state(4, 100), &state(5, 140));
    let mut both = whole.clone();
    both[60] ^= 1;
    both[SLOT + 60] ^= 1;
    for bytes in [
        &both[..],
        &[],
        &whole[..SLOT],
        &whole[..FILE - 1],
        &[0; FILE],
    ] {
        assert_eq!(
            State::recover(bytes),
            Err(Damage::Unreadable),
            "{}",
            bytes.len()
        );
    }
    let mut long = whole.clone();
    long.push(0);
    assert_eq!(State::recover(&long), Err(Damage::Unreadable));
    // A newer program may have changed everything after the version.
    let mut newer = whole;
    newer[4] = 2;
    newer[100] ^= 1;
    assert_eq!(State::recover(&newer), Err(Damage::Newer(2)));
    assert_eq!(State::recover(&newer[..7]), Err(Damage::Newer(2)));
}

#[test]
fn the_layout_stays() {
    let bytes = state(0x0102, 0x0304).encode();
    let head = [&b"DSEQ"[..], &[1, 0, 1, 0]].concat();
    assert_eq!(bytes[..8], head);
    assert_eq!(bytes[8..16], 0x05cb_a986_c29c_757a_u64.to_le_bytes());
    assert_eq!(bytes[16..18], [2, 1]);
    assert_eq!(bytes[56..60], [1, b'a', 4, 3]);
}

#[test]
fn a_state_that_leads_in_a_circle_is_damaged() {
    for before in [3, 4, u32::MAX] {
        let circle = State {
            before,
            ..state(4, 100)
        };
        let recovered = State::recover(&circle.encode_file());
        assert_eq!(recovered, Err(Damage::Unreadable), "{before}");
    }
    let earlier = State {
        before: 2,
        ..state(4, 100)
    };
    assert_eq!(State::recover(&earlier.encode_file()), Ok(earlier));
}

#[test]
fn a_file_with_the_name_of_another_epoch_is_refused() {
    let bytes = state(4, 100).encode_file();
    assert_eq!(State::recover_of(3, &bytes), Ok(state(4, 100)));
    assert_eq!(State::recover_of(2, &bytes), Err(Damage::Misnamed(3)));
}

#[test]
fn more_sequences_than_a_server_has_are_damage() {
    let name = |number: usize| format!("n{number}").parse().expect("it is a name");
    let with = |count: usize| State {
        sequences: (0..count).map(|number| (name(number), 1)).collect(),
        ..state(4, 100)
    };
    let most = with(MAX_SEQUENCES);
    assert_eq!(State::recover(&most.encode_file()), Ok(most));
    let recovered = State::recover(&with(MAX_SEQUENCES + 1).encode_file());
    assert_eq!(recovered, Err(Damage::Unreadable));
}
