//! Properties that plans must have, over many seeds.

use dunlin_core::ConfigError;

use super::Plan;
use crate::cluster::Kind;
use crate::world::Act;
use crate::world::rng::Ppm;

fn plans() -> Vec<Plan> {
    (0..500).map(Plan::draw).collect()
}

#[test]
fn endpoints_accept_every_plan() {
    for plan in plans() {
        // `check` refuses plans that forget a response before the client retransmits its request,
        // and plans whose budgets are smaller than the largest message. Seeds draw both kinds.
        let checked = plan.endpoint.check();
        let is_drawn = |error| {
            matches!(
                error,
                ConfigError::ResponseHold { .. } | ConfigError::Budget { .. }
            )
        };
        assert!(checked.is_ok() || checked.is_err_and(is_drawn));
        assert!(plan.processes() >= 2);
        assert!(
            plan.workload
                .windows
                .iter()
                .all(|window| window.is_power_of_two())
        );
        assert!(plan.workload.credits.iter().all(|credits| *credits > 0));
        assert!(plan.acts.iter().all(|(at, _)| *at <= plan.chaos_end));
        assert!(plan.attacks.iter().all(|(at, _)| *at <= plan.chaos_end));
    }
}

#[test]
fn counters_start_near_their_wrap_in_about_half_of_the_seeds() {
    let near = plans()
        .iter()
        .filter(|plan| plan.endpoint.first_req.0 != 0)
        .count();
    assert!((200..300).contains(&near), "{near} of 500");
}

#[test]
fn everything_happens_in_some_seed() {
    let plans = plans();
    let some = |what: &dyn Fn(&Plan) -> bool| plans.iter().filter(|plan| what(plan)).count() > 10;
    assert!(some(&|plan| plan.insider));
    assert!(some(&|plan| plan.elsewhere) && some(&|plan| !plan.elsewhere));
    assert!(some(&|plan| plan.attacks.is_empty()) && some(&|plan| !plan.attacks.is_empty()));
    assert!(some(&|plan| plan.workload.windows == [1]));
    assert!(some(&|plan| plan.workload.credits == [1]));
    assert!(some(&|plan| plan.endpoint.backlog == 1));
    assert!(some(&|plan| plan.workload.disconnects > Ppm::NEVER));
    assert!(some(&|plan| plan.rates.loss > Ppm::percent(10)));
    for kind in Kind::ALL {
        assert!(
            some(&|plan| plan.workload.kinds.contains(&kind)),
            "{kind:?}"
        );
    }
    let acts: [fn(&Act) -> bool; 4] = [
        |act| matches!(act, Act::Pause(_)),
        |act| matches!(act, Act::Crash(_)),
        |act| matches!(act, Act::Block(..)),
        |act| matches!(act, Act::Unplug(_)),
    ];
    for is_wanted in acts {
        assert!(some(&|plan| plan
            .acts
            .iter()
            .any(|(_, act)| is_wanted(act))));
    }
}
