//! Timers alone: they fire at their time, in order of time and then of their tokens.

use super::*;

#[test]
fn a_timer_fires_at_its_time_and_once() {
    let mut timers = UserTimers::default();
    assert_eq!(timers.next_due(), Nanos::MAX);
    timers.insert(Nanos(20), TimerToken(1));
    assert_eq!((timers.next_due(), timers.len()), (Nanos(20), 1));
    assert_eq!(timers.pop_due(Nanos(19)), None);
    assert_eq!(timers.pop_due(Nanos(20)), Some(TimerToken(1)));
    assert_eq!((timers.pop_due(Nanos(99)), timers.len()), (None, 0));
}

#[test]
fn equal_times_fire_in_the_order_of_their_tokens() {
    let mut timers = UserTimers::default();
    for (at, token) in [(30, 1), (10, 3), (10, 2)] {
        timers.insert(Nanos(at), TimerToken(token));
    }
    let fired = std::iter::from_fn(|| timers.pop_due(Nanos(30)));
    let tokens: Vec<u64> = fired.map(|token| token.0).collect();
    assert_eq!(tokens, [2, 3, 1]);
}
