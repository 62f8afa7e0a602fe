//! Refused configurations, and their messages.

use super::*;

fn refusal(change: impl FnOnce(&mut Config)) -> Option<ConfigError> {
    let mut config = Config::default();
    change(&mut config);
    config.check().err()
}

/// A change of the options, and the name that the error must contain.
type Change<T> = (fn(&mut T), &'static str);

#[test]
fn the_defaults_are_in_range() {
    assert_eq!(Config::default().check(), Ok(()));
}

#[test]
fn a_hold_must_outlast_three_of_the_longest_waits() {
    // By default probes wait longest: 100 ms.
    let hold = Nanos::from_millis(299);
    let least = Nanos::from_millis(300);
    assert_eq!(
        refusal(|config| config.response_hold = hold),
        Some(ConfigError::ResponseHold { hold, least })
    );
    assert_eq!(refusal(|config| config.response_hold = least), None);
    let timeouts: [fn(&mut Config); 2] = [
        |config| config.rto_floor = Nanos::from_millis(334),
        |config| config.rto_initial = Nanos::from_millis(334),
    ];
    for change in timeouts {
        let hold = Nanos::from_secs(1);
        let least = Nanos::from_millis(1_002);
        assert_eq!(
            refusal(change),
            Some(ConfigError::ResponseHold { hold, least })
        );
    }
}

/// Every message contains the option's key, as files and commands spell it.
#[test]
fn a_refusal_names_the_option_by_its_key() {
    let changes: [Change<Config>; 8] = [
        (|config| config.max_sessions = 0, "max_sessions"),
        (|config| config.max_window = 3, "max_window"),
        (|config| config.max_credits = 0, "max_credits"),
        (|config| config.max_message = 0, "max_message"),
        (|config| config.first_req.0 = 1, "first_req"),
        (|config| config.wheel_slot = Nanos::ZERO, "wheel_slot"),
        (|config| config.ack_delay = Nanos::ZERO, "ack_delay"),
        (
            |config| config.response_hold = Nanos(9_999),
            "response_hold",
        ),
    ];
    for (change, name) in changes {
        let said = refusal(change).map(|error| error.to_string());
        let starts = |said: &String| said.starts_with(&format!("`endpoint.{name}` is "));
        assert!(said.as_ref().is_some_and(starts), "{name}: {said:?}");
    }
}

#[test]
fn a_session_is_refused_by_its_own_keys() {
    let changes: [Change<SessionOptions>; 2] = [
        (|options| options.window = 3, "`session.window` is 3;"),
        (
            |options| options.credits = 4097,
            "`session.credits` is 4097;",
        ),
    ];
    for (change, start) in changes {
        let mut options = SessionOptions::DEFAULT;
        assert_eq!(options.check(), Ok(()));
        change(&mut options);
        let said = options.check().unwrap_err().to_string();
        assert!(said.starts_with(start), "{said}");
    }
}

#[test]
fn a_hold_need_not_outlast_probes_that_the_failure_timeout_shortens() {
    assert_eq!(
        refusal(|config| config.probe_max = Nanos::from_secs(10)),
        None,
        "an eighth of the failure time-out, 125 ms, is the longest wait"
    );
    let refused = refusal(|config| {
        config.probe_max = Nanos::from_secs(10);
        config.failure_timeout = Nanos::from_secs(8);
    });
    let (hold, least) = (Nanos::from_secs(1), Nanos::from_secs(3));
    assert_eq!(refused, Some(ConfigError::ResponseHold { hold, least }));
    let text = refused.map(|error| error.to_string()).unwrap_or_default();
    for part in [
        "`endpoint.response_hold` is 1s",
        "at least 3s",
        "`endpoint.probe_max`",
    ] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn a_near_peer_has_at_least_the_first_timeout() {
    let mut config = Config::default();
    assert_eq!(config.least_timeout(false), config.rto_floor);
    assert_eq!(config.least_timeout(true), config.rto_initial);
    config.rto_floor = config.rto_initial.times(2);
    assert_eq!(config.least_timeout(true), config.rto_floor);
}
