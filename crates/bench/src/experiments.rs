//! The experiments: one list, and a file for each experiment or for two similar ones. A new
//! experiment is a file here and a line in [`ALL`]; if its roles are long, they go into a folder of
//! the same name. Experiments outside the summary belong to the feature `full`, experiments with
//! the key-value service to `kv`, and experiments with the replicated store, the index and the
//! sequencer to the features of these names.

#[cfg(feature = "full")]
mod bandwidth;
#[cfg(feature = "full")]
mod cluster;
#[cfg(feature = "full")]
mod faces;
#[cfg(feature = "full")]
mod factors;
mod idle;
#[cfg(feature = "full")]
mod incast;
#[cfg(feature = "index")]
mod index;
#[cfg(feature = "kv")]
mod kv;
mod latency;
#[cfg(feature = "full")]
mod loss;
#[cfg(feature = "kv")]
mod memcached;
#[cfg(feature = "full")]
mod mixed;
#[cfg(feature = "full")]
mod parallel;
#[cfg(feature = "full")]
mod queue;
mod rate;
mod raw;
#[cfg(feature = "replica")]
mod replica;
#[cfg(feature = "sequencer")]
mod sequencer;
#[cfg(feature = "full")]
mod sessions;
#[cfg(feature = "full")]
mod slow_handler;
#[cfg(feature = "kv")]
mod store;
#[cfg(feature = "kv")]
mod store_memory;
mod summary;

use harness::draw;
use harness::process::Role;
use harness::row::Row;

use crate::harness::experiment::Experiment;
use crate::output::{aims, ratios};

/// All experiments, in the order of the help, of `all` and of the page.
pub static ALL: &[Experiment] = &[
    summary::EXPERIMENT,
    raw::EXPERIMENT,
    latency::EXPERIMENT,
    rate::EXPERIMENT,
    #[cfg(feature = "full")]
    bandwidth::EXPERIMENT,
    #[cfg(feature = "full")]
    loss::LOSS,
    #[cfg(feature = "full")]
    loss::REORDER,
    #[cfg(feature = "full")]
    mixed::EXPERIMENT,
    #[cfg(feature = "full")]
    parallel::EXPERIMENT,
    #[cfg(feature = "full")]
    queue::EXPERIMENT,
    #[cfg(feature = "full")]
    factors::EXPERIMENT,
    #[cfg(feature = "full")]
    incast::EXPERIMENT,
    #[cfg(feature = "full")]
    incast::BACKGROUND,
    #[cfg(feature = "full")]
    cluster::EXPERIMENT,
    #[cfg(feature = "full")]
    sessions::EXPERIMENT,
    idle::EXPERIMENT,
    #[cfg(feature = "full")]
    slow_handler::EXPERIMENT,
    #[cfg(feature = "full")]
    faces::EXPERIMENT,
    #[cfg(feature = "kv")]
    store::EXPERIMENT,
    #[cfg(feature = "kv")]
    store_memory::EXPERIMENT,
    #[cfg(feature = "kv")]
    kv::EXPERIMENT,
    #[cfg(feature = "kv")]
    memcached::EXPERIMENT,
    #[cfg(feature = "replica")]
    replica::EXPERIMENT,
    #[cfg(feature = "index")]
    index::EXPERIMENT,
    #[cfg(feature = "sequencer")]
    sequencer::EXPERIMENT,
];

/// The experiment that has this name in commands or in rows.
pub fn find(name: &str) -> Option<&'static Experiment> {
    ALL.iter()
        .find(|it| it.name == name || it.alias == Some(name))
}

/// The experiments that have a part of the page of results.
pub fn with_section() -> impl Iterator<Item = &'static Experiment> {
    ALL.iter().filter(|it| it.section.is_some())
}

/// The roles of the processes of all experiments.
pub fn roles() -> impl Iterator<Item = Role> {
    ALL.iter().flat_map(|it| it.roles).copied()
}

/// The lines that follow a table of these rows.
pub fn lines(rows: &[Row]) -> Vec<String> {
    let findings = ALL.iter().flat_map(|it| (it.findings)(rows));
    let lines = ratios::lines(rows).into_iter().chain(findings);
    lines.chain(aims::lines(rows)).collect()
}

/// Draws every chart for which these rows have values.
pub fn draw(rows: &[Row]) -> String {
    let mut experiments: Vec<&str> = Vec::new();
    for row in rows {
        if !experiments.contains(&&*row.experiment) {
            experiments.push(&row.experiment);
        }
    }
    let experiments = experiments.into_iter().filter_map(find);
    let charts: Vec<_> = experiments.flat_map(|it| it.charts(rows)).collect();
    draw::sheet(&charts, 2)
}

#[cfg(test)]
mod tests;
