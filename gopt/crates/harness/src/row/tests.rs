//! The median of odd and even numbers of values, and the exact form of a JSON row.

use super::*;
use crate::state::State;

/// A row with a spread of 5 % around a median of 400 ns, twice the baseline.
pub(crate) fn sample() -> Row {
    let spread = Spread {
        median: 400.0,
        min: 390.0,
        max: 410.0,
    };
    Row {
        transport: "shm".into(),
        params: Map::from_iter([("size".to_owned(), 32.into())]),
        runs: 5,
        ..Row::new("latency", ("rtt_p50", "ns"), spread).against(200.0, "raw")
    }
}

#[test]
fn the_spread_of_nothing_is_nothing() {
    assert_eq!(Spread::of(std::iter::empty()), None);
}

#[test]
fn the_median_stands_in_the_middle() {
    let spread = |values: &[f64]| Spread::of(values.iter().copied()).unwrap();
    assert_eq!(
        spread(&[7.0]),
        Spread {
            median: 7.0,
            min: 7.0,
            max: 7.0
        }
    );
    assert_eq!(
        spread(&[9.0, 1.0, 5.0]),
        Spread {
            median: 5.0,
            min: 1.0,
            max: 9.0
        }
    );
    assert_eq!(
        spread(&[4.0, 1.0, 9.0, 2.0]),
        Spread {
            median: 3.0,
            min: 1.0,
            max: 9.0
        }
    );
}

#[test]
fn a_row_is_one_line_with_its_fields_in_order() {
    let mut row = Row {
        min: 390.5,
        run: Origin {
            format: 1,
            dunlin: "0.1.0".to_owned(),
            commit: Some("abc1234".to_owned()),
            build: "release".to_owned(),
            machine: "one".to_owned(),
        },
        state: Condition::Steady(State {
            ping_ns: 110.0,
            min: 100.0,
            max: 120.5,
            left_out: 2,
        }),
        ..sample()
    };
    assert_eq!(
        serde_json::to_string(&row).unwrap(),
        r#"{"experiment":"latency","transport":"shm","params":{"size":32},"metric":"rtt_p50","#
            .to_owned()
            + r#""unit":"ns","median":400.0,"min":390.5,"max":410.0,"runs":5,"baseline":200.0,"#
            + r#""baseline_name":"raw","ratio":2.0,"valid":true,"#
            + r#""state":{"ping_ns":110.0,"min":100.0,"max":120.5,"left_out":2},"#
            + r#""run":{"format":1,"dunlin":"0.1.0","commit":"abc1234","#
            + r#""build":"release","machine":"one"}}"#
    );
    (row.baseline, row.baseline_name, row.ratio) = (None, None, None);
    let text = serde_json::to_string(&row).unwrap();
    assert!(
        text.contains(r#""baseline":null,"baseline_name":null,"ratio":null"#),
        "{text}"
    );
}

#[test]
fn a_row_says_why_it_has_no_state() {
    let of = |text: &str| serde_json::from_str::<Row>(text).map(|row| row.state);
    for reason in [Reason::NotMeasured, Reason::Changing, Reason::NotRecorded] {
        let state = Condition::Without(reason);
        let text = serde_json::to_string(&Row { state, ..sample() }).unwrap();
        assert_eq!(of(&text).unwrap(), state);
    }
    let text = serde_json::to_string(&sample()).unwrap();
    let older = text.replace(r#""state":"not measured","#, "");
    assert_ne!(older, text);
    assert_eq!(of(&older).unwrap(), Condition::of_older());
    let null = text.replace(r#""not measured""#, "null");
    assert_eq!(of(&null).unwrap(), Condition::of_older());
    assert!(of(&text.replace("not measured", "unknown")).is_err());
}

/// Older rows have no field for it; figures that do not depend on the machine need no rounds.
#[test]
fn an_older_row_of_too_few_rounds_is_not_measured() {
    let state = Condition::Steady(State {
        ping_ns: 110.0,
        min: 100.0,
        max: 120.0,
        left_out: 0,
    });
    let of = |runs, state| Row {
        runs,
        state,
        ..sample()
    };
    let text = serde_json::to_string(&of(6, state)).unwrap();
    assert!(!text.contains("measured"), "{text}");
    let read: Row = serde_json::from_str(&text).unwrap();
    assert_eq!(read.shortage().unwrap(), "not measured: 6 of 7 rounds");
    assert_eq!(of(7, state).shortage(), None);
    assert_eq!(
        of(1, Condition::Without(Reason::NotMeasured)).shortage(),
        None
    );
    assert!(of(1, Condition::of_older()).shortage().is_some());
}
