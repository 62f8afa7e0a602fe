//! The quick ways of taking numbers.

use super::*;

/// Takes numbers like a handler: in the quick ways first.
fn take_quickly(sequencer: &mut Sequencer, take: &Take, now: Nanos) -> Result<Answer, Taken> {
    let words = Words::of(&take.encode()).expect("it has the right length");
    if let Some(first) = sequencer.take_usual(words, now) {
        return Ok(Answer::Whole(first));
    }
    if let Some(answer) = sequencer.take_expecting(words, now) {
        return Ok(answer);
    }
    match sequencer.take(take, now) {
        Taken::First(first) => Ok(take.answer(first)),
        other => Err(other),
    }
}

#[test]
fn the_quick_ways_give_what_the_general_one_gives() {
    let sequences = [("a", 50), ("b", (1 << 32) - 60), ("c", u64::MAX - 70)];
    let [mut quick, mut general] = [(); 2].map(|()| {
        let mut sequencer = Sequencer::new(claim(0, &sequences), OPTIONS);
        settle(&mut sequencer, Nanos(10));
        sequencer
    });
    let (mut quick_ones, mut lower_ones) = (0, 0);
    let counts = [1, 1, 1, 7, 0, MAX_COUNT, 1, MAX_COUNT + 1];
    let expected = [None, Some(0), Some(1), Some(u32::MAX)];
    for number in 0..2000_usize {
        let take = Take {
            sequence: [0, 1, 2, 3][number % 7 % 4],
            epoch: if number % 11 == 3 { 6 } else { 7 },
            count: counts[number % 13 % counts.len()],
            expected: expected[number % 5 % 4],
        };
        // At 910, the lease has ended.
        let now = Nanos([10, 909, 910][number % 17 % 3]);
        let words = Words::of(&take.encode()).expect("it has the right length");
        let is_usual = take.expected.is_none();
        let before = quick.figures(now).requests;
        let answer = take_quickly(&mut quick, &take, now);
        if is_usual {
            quick_ones += quick.figures(now).requests - before;
        }
        lower_ones += u32::from(matches!(answer, Ok(Answer::Lower(_))));
        let other = match general.take(&take, now) {
            Taken::First(first) => Ok(take.answer(first)),
            other => Err(other),
        };
        assert_eq!(answer, other, "{number}: {take:?}");
        assert_eq!(quick.figures(now), general.figures(now), "{words:?}");
        if number % 3 == 0 {
            let limits = settle(&mut quick, Nanos(10));
            assert_eq!(limits, settle(&mut general, Nanos(10)));
        }
    }
    assert!(
        quick_ones > 100 && lower_ones > 100,
        "{quick_ones}, {lower_ones}"
    );
}

#[test]
fn a_request_with_another_word_or_length_is_not_usual() {
    let bytes = take(1).encode();
    for at in 0..Take::SIZE {
        let mut sequencer = started();
        let mut other = bytes;
        other[at] ^= 0x80;
        let words = Words::of(&other).expect("it has the right length");
        let given = sequencer.take_usual(words, Nanos(10));
        assert_eq!(given, None, "byte {at}");
    }
    let words = Words::of(&bytes).expect("it has the right length");
    assert_eq!(started().take_usual(words, Nanos(10)), Some(50));
    assert_eq!(Words::of(&bytes[..15]), None);
    assert_eq!(Words::of(&[bytes, bytes].concat()), None);
}
