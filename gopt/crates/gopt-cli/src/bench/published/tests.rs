//! A published figure is shown only next to the best width of the same look-up.

use harness::row::{Row, Spread};
use serde_json::json;

use super::*;

fn row(lookup: &str, shape: &str, form: &str, batch: u32, ratio: f64) -> Row {
    let params = json!({"lookup": lookup, "shape": shape, "form": form, "batch": batch});
    let spread = Spread {
        median: ratio,
        min: ratio,
        max: ratio,
    };
    Row {
        params: params.as_object().cloned().unwrap(),
        ..Row::new("gopt", (RATE, "1/s"), spread).against(1.0, "c-plain")
    }
}

#[test]
fn a_figure_of_the_paper_is_shown_next_to_the_best_width() {
    let rows = [
        row("cuckoo", "tight", "c-gopt", 8, 1.5),
        row("cuckoo", "tight", "c-gopt", 16, 2.0),
        row("cuckoo", "tight", "c-gopt", 32, 1.9),
        row("cuckoo", "tight", "c-hand", 16, 9.0),
        row("mica", "tight", "c-gopt", 16, 9.0),
    ];
    let expected = "c-gopt / c-plain: 2.00 here, 2.60 published  cuckoo, tight \
                    (G-Opt, figure 8: Xeon E5-2680)";
    assert_eq!(lines(&rows), [expected]);
}

#[test]
fn without_rows_there_is_nothing_to_compare() {
    assert_eq!(lines(&[]), Vec::<String>::new());
}
