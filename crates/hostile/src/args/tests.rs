//! The command that repeats a run has the same arguments.

use clap::Parser;

use super::*;

#[test]
fn the_replayed_run_has_the_same_arguments() {
    let line = "hostile --minutes 3.5 --seed 9 --only floods,drills --packet-rate 5 --reach";
    let args = Args::parse_from(line.split(' '));
    assert_eq!(args.attacks(), [Attack::Floods, Attack::Drills]);
    let again = args.replay();
    let again = Args::parse_from(again.split(' ').skip(2));
    assert_eq!(again.replay(), args.replay());
    assert_eq!((again.minutes, again.seed), (3.5, 9));
    assert_eq!((again.packet_rate, again.reach), (5, true));
    assert_eq!(again.attacks(), args.attacks());
}

#[test]
fn all_attackers_work_unless_some_are_named() {
    let args = Args::parse_from(["hostile"]);
    assert_eq!(args.attacks(), Attack::ALL);
    assert!(!args.replay().contains("--only"));
}

#[test]
fn a_run_too_short_for_its_phases_is_refused() {
    for minutes in ["0.1", "NaN", "-3", "x"] {
        let parsed = Args::try_parse_from(["hostile", "--minutes", minutes]);
        assert!(parsed.is_err(), "{minutes}");
    }
}
