//! Reads budget files, and finds counts above their ceilings.

use super::{Budget, Build, excesses, file_row, loose};

const FILE: &str = "# why\n[measured]\none = [[400, 50, 60], [300, 40, 50]] # note\n\
                    [plain]\none = [[401, 51, 61], [301, 41, 51]]\n";

fn rows(build: Build) -> Vec<String> {
    match build {
        Build::Measured | Build::Plain => vec!["one".to_owned()],
        _ => Vec::new(),
    }
}

#[test]
fn each_build_has_a_section_with_each_row() {
    let budget = Budget::parse(FILE, rows).unwrap();
    let of = |build| budget.ceilings(build, "one").unwrap();
    assert_eq!(of(Build::Measured), [[400, 50, 60], [300, 40, 50]]);
    assert_eq!(of(Build::Plain), [[401, 51, 61], [301, 41, 51]]);
}

#[test]
fn a_malformed_budget_is_refused_with_the_place() {
    for (part, instead, why) in [
        ("[plain]", "[simple]", "`[simple]` is not a section"),
        ("[measured]", "", "is in no section"),
        (
            "[plain]\none",
            "[plain]\ntwo",
            "`two`, which is not counted",
        ),
        ("[plain]\none", "[plain]\n#", "[plain] has no row `one`"),
        ("[plain]\n", "", "[measured] has `one` twice"),
        ("400", "-400", "whole numbers"),
        ("400", "400.5", "whole numbers"),
        ("60]", "60, 7]", "whole numbers"),
        ("]] #", "], []] #", "whole numbers"),
        ("= [", "[", "whole numbers"),
    ] {
        let text = FILE.replacen(part, instead, 1);
        let error = Budget::parse(&text, rows).unwrap_err().to_string();
        assert!(error.contains(why), "{text}\n{error}");
    }
}

#[test]
fn a_difference_of_two_rows_has_a_bound_for_both_sides_together() {
    let rows = |build| match build {
        Build::Typed => vec!["less".to_owned(), "more".to_owned()],
        _ => Vec::new(),
    };
    let file = "[typed]\nless = [[1, 1, 1], [1, 1, 1]]\nmore = [[9, 9, 9], [9, 9, 9]]\n\
                more - less = 10 # why\n";
    let budget = Budget::parse(file, rows).unwrap();
    assert_eq!(budget.extras(Build::Layer).count(), 0);
    let [bound] = budget.extras(Build::Typed).collect::<Vec<_>>()[..] else {
        panic!("it has one bound");
    };
    let excess = |client, server| {
        let less = [[100.0, 1.0, 1.0], [200.0, 1.0, 1.0]];
        bound.excess(&[[client, 99.0, 99.0], [server, 99.0, 99.0]], &less)
    };
    assert_eq!(excess(98.0, 212.0), None);
    assert_eq!(
        excess(98.5, 212.0).as_deref(),
        Some(
            "OVER BUDGET: [typed] more needs 10.5 instructions more than less, but may need 10 more"
        )
    );
    for (part, instead, why) in [
        (
            "more - less",
            "more - least",
            "`least`, which is not counted",
        ),
        ("= 10 #", "= ten #", "whole numbers"),
    ] {
        let error = Budget::parse(&file.replacen(part, instead, 1), rows).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn a_count_above_its_ceiling_is_named_with_row_side_and_both_numbers() {
    let ceilings = [[400, 50, 60], [300, 40, 50]];
    let at = |stores| {
        excesses(
            Build::Plain,
            "one",
            &[[400.0, 50.0, 60.0], [300.0, stores, 1.0]],
            &ceilings,
        )
    };
    assert!(at(40.0).is_empty());
    let found = at(40.06);
    assert_eq!(found.len(), 1);
    for part in ["[plain]", "one", "server", "40.1 stores", "may need 40"] {
        assert!(found[0].contains(part), "{found:?}");
    }
}

#[test]
fn ceilings_are_loose_only_if_a_new_row_would_lower_them_clearly() {
    let ceilings = [[400, 50, 60], [300, 40, 50]];
    let counts = [[398.0, 49.5, 59.5], [298.0, 39.5, 49.5]];
    assert_eq!(loose(&counts, &ceilings), 0);
    let fewer = [[380.0, 49.5, 59.5], [298.0, 30.0, 49.5]];
    assert_eq!(loose(&fewer, &ceilings), 2);
}

#[test]
fn the_row_that_is_printed_allows_what_was_counted_and_little_more() {
    let counts = [[400.0, 50.2, 60.0], [1000.0, 40.0, 0.0]];
    let row = file_row("one", &counts);
    let text = format!("[measured]\n{row}\n[plain]\n{row}\n");
    let budget = Budget::parse(&text, rows).unwrap();
    let ceilings = budget.ceilings(Build::Measured, "one").unwrap();
    assert_eq!(ceilings, [[402, 51, 61], [1005, 41, 0]]);
    assert_eq!(loose(&counts, &ceilings), 0);
    assert!(excesses(Build::Measured, "one", &counts, &ceilings).is_empty());
}

#[test]
fn of_two_counts_the_lower_numbers_remain() {
    let one = [[1.0, 5.0, 3.0], [4.0, 2.0, 6.0]];
    let other = [[2.0, 4.0, 3.5], [3.0, 2.5, 7.0]];
    let least = [[1.0, 4.0, 3.0], [3.0, 2.0, 6.0]];
    assert_eq!(super::least(one, other), least);
}
