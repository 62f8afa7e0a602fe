//! Rows made from known rates: their parameters, medians and ratios, and the rows that are shown.

use serde_json::json;

use super::*;
use crate::bench::options::Lookup;

fn job(lookup: Lookup, widths: &[usize]) -> Job {
    Job {
        lookup,
        shapes: vec![Shape::Tight, Shape::Handler],
        widths: widths.to_vec(),
        table_mib: 2048,
        runs: 3,
    }
}

const MADE: Made = Made {
    bytes: 2 << 30,
    huge_bytes: 2 << 30,
    lines: 1.5,
};

/// The rows of three rounds with these rates; in the first round the rates differ.
fn rows(job: &Job, shape: Shape, rates: &[(Form, Option<usize>, f64)], made: Made) -> Vec<Row> {
    let mut all = Rates::new(job, shape, made);
    let round: Vec<f64> = all
        .cells
        .iter()
        .map(|cell| {
            let is =
                |rate: &&(Form, Option<usize>, f64)| (rate.0, rate.1) == (cell.form, cell.batch);
            rates.iter().find(is).map_or(1.0, |rate| rate.2)
        })
        .collect();
    let disturbed = round.iter().map(|rate| rate / 2.0).collect();
    for round in [disturbed, round.clone(), round] {
        all.add(round).unwrap();
    }
    all.rows()
}

fn find<'a>(rows: &'a [Row], metric: &str, params: &Value) -> &'a Row {
    let is = |row: &&Row| row.metric == metric && Value::Object(row.params.clone()) == *params;
    rows.iter().find(is).unwrap()
}

#[test]
fn a_form_is_compared_with_plain_and_hand_with_random_lines() {
    let job = job(Lookup::Cuckoo, &[8, 16]);
    let rates = [
        (Form::Plain, None, 10.0),
        (Form::Gopt, Some(16), 30.0),
        (Form::Hand, Some(8), 40.0),
        (Form::Lines, Some(16), 80.0),
    ];
    let rows = rows(&job, Shape::Tight, &rates, MADE);
    let plain = json!({"lookup": "cuckoo", "form": "plain", "shape": "tight"});
    let plain = find(&rows, RATE, &plain);
    assert_eq!((plain.median, plain.min, plain.max), (10.0, 5.0, 10.0));
    assert_eq!((plain.baseline, plain.ratio, plain.runs), (None, None, 3));
    let gopt = json!({"lookup": "cuckoo", "form": "gopt", "shape": "tight", "batch": 16});
    let gopt = find(&rows, RATE, &gopt);
    assert_eq!((gopt.baseline, gopt.ratio), (Some(10.0), Some(3.0)));
    assert_eq!(gopt.baseline_name.as_deref(), Some("plain"));
    let hand = json!({"lookup": "cuckoo", "form": "hand", "shape": "tight", "batch": 8});
    let hand = find(&rows, LINES, &hand);
    assert_eq!((hand.median, hand.baseline), (60.0, Some(80.0)));
    assert_eq!(hand.ratio, Some(0.75));
    assert!(rows.iter().all(|row| row.valid && row.transport == "none"));
}

#[test]
fn every_form_and_width_has_a_row_and_only_hand_has_lines() {
    let widths = [1, 2, 4, 8, 16, 24, 32, 48, 64];
    let job = job(Lookup::Btree, &widths);
    for (shape, lines) in [(Shape::Tight, 2 * widths.len()), (Shape::Handler, 0)] {
        let rows = rows(&job, shape, &[], MADE);
        let count = |metric: &str| rows.iter().filter(|row| row.metric == metric).count();
        assert_eq!(count(RATE), 2 + 4 * widths.len());
        assert_eq!(count(LINES), lines);
    }
}

#[test]
fn a_small_table_makes_no_valid_row() {
    let small = Made {
        bytes: 1 << 20,
        ..MADE
    };
    let job = job(Lookup::Mica, &[8]);
    let rows = rows(&job, Shape::Tight, &[], small);
    assert!(rows.iter().all(|row| !row.valid));
}

#[test]
fn a_round_without_a_rate_for_each_cell_is_an_error() {
    let job = job(Lookup::Mica, &[8]);
    let error = Rates::new(&job, Shape::Handler, MADE).add(vec![1.0]);
    assert_eq!(error.unwrap_err().to_string(), "1 rates, not 6");
}

#[test]
fn rates_of_lines_come_from_the_rounds_of_all_look_ups() {
    let jobs = [Lookup::Mica, Lookup::Btree].map(|lookup| job(lookup, &[8]));
    let mut lines = LineRates::default();
    for (job, rate) in jobs.iter().zip([10.0, 20.0]) {
        let mut rates = Rates::new(job, Shape::Tight, MADE);
        rates.add([vec![1.0; 6], vec![rate]].concat()).unwrap();
        lines.add(&rates);
    }
    let rows = lines.rows();
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0].median, rows[0].runs), (15.0, 2));
    assert_eq!(rows[0].params["lookup"], "lines");
}

#[test]
fn people_see_the_best_width_and_the_ratio_of_the_best_widths() {
    let job = job(Lookup::Cuckoo, &[8, 16]);
    let rates = [
        (Form::Gopt, Some(8), 20.0),
        (Form::Gopt, Some(16), 30.0),
        (Form::Hand, Some(8), 40.0),
        (Form::Hand, Some(16), 5.0),
    ];
    let rows = rows(&job, Shape::Handler, &rates, MADE);
    let shown: Vec<&Row> = rows.iter().filter(|row| is_best(row, &rows)).collect();
    assert_eq!(shown.len(), 6, "one for each form");
    let ratios = ratios(&rows);
    assert_eq!(ratios[0], "plain / c-plain: 1.00  cuckoo, handler");
    assert_eq!(ratios[1], "gopt at 16 / hand at 8: 0.75  cuckoo, handler");
}

#[test]
fn instructions_are_compared_with_those_of_plain_in_the_same_shape() {
    let counted = |shape, form, batch, instructions| Counted {
        shape,
        cell: Cell { form, batch },
        instructions,
    };
    let counted = [
        counted(Shape::Tight, Form::Plain, None, 50.0),
        counted(Shape::Handler, Form::Plain, None, 500.0),
        counted(Shape::Handler, Form::Gopt, Some(16), 600.0),
    ];
    let rows = instructions(&job(Lookup::Ipv4, &[16]), &counted);
    assert_eq!(rows[2].ratio, Some(1.2));
    assert_eq!(rows[2].params["batch"], 16);
    assert_eq!((rows[0].ratio, rows[1].ratio), (None, None));
}
