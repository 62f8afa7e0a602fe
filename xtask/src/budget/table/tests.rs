//! What the budget file says, and when a measurement is too much.

use super::{Budget, Verdict, collected, parse};

fn budget(instructions: u32) -> Budget {
    Budget {
        name: "one".to_owned(),
        instructions,
    }
}

#[test]
fn more_than_the_budget_is_too_much_and_the_message_says_what_to_do() {
    let budget = budget(400);
    assert_eq!(budget.judge(400.0), Verdict::Within);
    assert_eq!(budget.judge(400.1), Verdict::Above);
    let advice = budget.advice(412.34).unwrap();
    for part in ["`one`", "412.3", "400", "docs/decisions/"] {
        assert!(advice.contains(part), "{advice}");
    }
}

#[test]
fn a_gain_of_more_than_three_percent_lowers_the_budget() {
    let budget = budget(400);
    assert_eq!(budget.judge(388.0), Verdict::Within);
    assert_eq!(budget.advice(388.0), None);
    assert_eq!(budget.judge(387.9), Verdict::Below);
    assert!(budget.advice(350.2).unwrap().contains("to 351"));
}

#[test]
fn the_file_has_a_number_for_each_name() {
    let text = "# why\n[instructions_per_rpc]\none = 400 # both sides\n\nbatch=300\n";
    let budgets = parse(text).unwrap();
    assert_eq!(Budget::find(&budgets, "one").unwrap(), &budget(400));
    assert_eq!(Budget::find(&budgets, "batch").unwrap().instructions, 300);
    assert!(Budget::find(&budgets, "udp").is_err());
}

#[test]
fn a_file_that_says_something_else_is_refused() {
    for text in [
        "one = 400",
        "[instructions_per_rpc]\none",
        "[instructions_per_rpc]\none = many",
        "[instructions_per_rpc]\none = -4",
        "[instructions_per_rpc]\none = 4\none = 5",
        "[instructions]\none = 4",
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn the_count_is_found_in_what_callgrind_prints() {
    let log = "==12== Events    : Ir\n==12== Collected : 4821930\n==12== \n";
    assert_eq!(collected(log), Some(4_821_930));
    assert_eq!(collected("==12== Command: x\n"), None);
}
