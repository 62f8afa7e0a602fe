//! The names of experiments in commands: one of each, and `all`.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use dunlin_bench::experiments;
use dunlin_bench::harness::experiment::Experiment;
use dunlin_bench::harness::selection::Selection;

/// The name that stands for several experiments.
const ALL: &str = "all";

/// One name, or `all`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Named {
    /// An experiment.
    One(&'static Experiment),
    /// The experiments that take a quarter of an hour together.
    All,
}

impl Named {
    /// Reads a name on the command line.
    pub(super) fn parser() -> impl TypedValueParser<Value = Self> {
        let about = |it: &Experiment| PossibleValue::new(it.name).help(it.about).aliases(it.alias);
        let all = "A quarter of an hour: all of these, except those that say otherwise and summary";
        let all = PossibleValue::new(ALL).help(all);
        let names = experiments::ALL.iter().map(about).chain([all]);
        // Only names of experiments and `all` get this far.
        PossibleValuesParser::new(names)
            .map(|name| experiments::find(&name).map_or(Self::All, Self::One))
    }

    /// The experiments that the name stands for.
    pub(super) fn experiments(self) -> impl Iterator<Item = &'static Experiment> {
        let is_meant = move |it: &&Experiment| match self {
            Self::One(one) => one.name == it.name,
            Self::All => it.is_in_all,
        };
        experiments::ALL.iter().filter(is_meant)
    }

    /// The reason why the experiment cannot be measured with these choices, if there is one.
    pub(super) fn refusal(self, selection: &Selection) -> Option<String> {
        if selection.sizes().is_some() && !self.experiments().any(Experiment::is_sized) {
            let sized = experiments::ALL.iter().filter(|it| it.is_sized());
            let sized: Vec<&str> = sized.map(|it| it.name).collect();
            return Some(format!("--size belongs to {}", sized.join(" and ")));
        }
        #[cfg(feature = "kv")]
        if selection.items_mib().is_some() && !self.experiments().any(Experiment::has_tables) {
            let with_tables = experiments::ALL.iter().filter(|it| it.has_tables());
            let with_tables: Vec<&str> = with_tables.map(|it| it.name).collect();
            return Some(format!(
                "--items-mib belongs to {}",
                with_tables.join(" and ")
            ));
        }
        self.experiments().find_map(|it| it.refusal(selection))
    }
}
