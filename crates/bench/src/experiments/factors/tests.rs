//! Which factors include others, and which slices form pairs.

use super::*;

#[test]
fn everything_includes_all_factors_but_control() {
    for off in Factor::ALL {
        assert!(off.includes(off) || off == Factor::AllThree);
        let is_control = matches!(off, Factor::Timely | Factor::Control);
        assert_eq!(Factor::Everything.includes(off), !is_control);
        assert!(!Factor::Control.includes(off) || off == Factor::Control);
    }
    let three = Factor::ALL
        .into_iter()
        .filter(|&it| Factor::AllThree.includes(it));
    assert_eq!(three.count(), 3);
}

#[test]
fn a_slice_with_all_factors_is_compared_with_the_next_one_that_lacks_a_factor() {
    let rates = [(3, 9.0), (4, 10.0), (5, 8.0), (6, 20.0), (8, 5.0), (9, 6.0)];
    let late = [(11, 1.0), (12, 3.0), (15, 4.0)];
    let pairs = pair::pairs_of(&rates.into_iter().chain(late).collect());
    assert_eq!(pairs, [[10.0, 8.0], [5.0, 6.0], [3.0, 4.0]]);
}

#[test]
fn both_schemes_have_a_price() {
    let row = |off: Factor, ratio: f64| Row {
        params: params(off)
            .map(|(name, value)| (name.to_owned(), value))
            .into_iter()
            .collect(),
        ..Row::new(
            "factors",
            ("rate_ratio", ""),
            Spread::of([ratio].into_iter()).unwrap(),
        )
    };
    let rows = [row(Factor::Timely, 1.1), row(Factor::Control, 1.25)];
    let said = cost_of_control(&rows);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("Timely costs 20.0 %"), "{said:?}");
    assert!(
        said[1].contains("Swift") && said[1].contains("costs 12.0 %"),
        "{said:?}"
    );
    assert_eq!(cost_of_control(&rows[..1]).len(), 0, "not measured");
}
