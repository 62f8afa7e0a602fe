//! One run of a scenario file.

use dunlin_sim::scenario::{self, Report};
use dunlin_sim::world::net::Capture;
use harness::progress::Timeline;
use harness::signal;

use crate::source::Variant;
use crate::text::title;

/// One finished run.
pub struct Done {
    /// The variant that ran.
    pub variant: Variant,
    /// Its results.
    pub report: Report,
}

/// Runs one variant of a file, with progress on the standard error. `capture` gets its frames.
/// After Ctrl-C, the report covers the time until then.
///
/// # Errors
/// The scenario is wrong, or the run broke an invariant.
pub fn run(variant: Variant, capture: Option<Capture>) -> anyhow::Result<Done> {
    let scenario = &variant.scenario;
    let mut progress = Timeline::start(&title(&variant), scenario.end.0 / 1000);
    let report = scenario::run_on(
        scenario,
        |net| {
            if let Some(capture) = capture {
                net.borrow_mut().capture(capture);
            }
        },
        |at| {
            progress.reached(at.0 / 1000);
            signal::check().is_ok()
        },
    )?;
    Ok(Done { variant, report })
}
