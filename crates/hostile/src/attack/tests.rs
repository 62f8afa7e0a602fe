//! Attackers keep their rate.

use super::*;

#[test]
fn a_rate_is_kept_even_if_its_parts_are_late() {
    let mut pace = Pace::begin(Duration::from_secs(10), 1_000);
    let (mut all, mut at) = (0, 0);
    for late in [1, 1, 40, 3, 900, 2, 53, 8_000] {
        at += late;
        all += pace.due(Duration::from_millis(at)).unwrap_or(0);
        assert_eq!(all, at);
    }
    assert_eq!(pace.due(Duration::from_secs(10)), None);
}

#[test]
fn names_on_the_command_line_are_the_names_of_the_roles() {
    for attack in Attack::ALL {
        let value = clap::ValueEnum::to_possible_value(&attack);
        let value = value.map(|value| value.get_name().to_owned());
        assert_eq!(value.as_deref(), Some(attack.name()));
    }
}
