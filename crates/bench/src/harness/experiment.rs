//! An experiment: its cases, the roles of its processes, and its texts and charts. Each experiment
//! is a constant in a file of [`crate::experiments`].

use std::time::Duration;

use harness::draw::{Kind, Picture};
use harness::process::Role;
use harness::row::Row;

use super::case::Case;
use super::selection::Selection;
use super::transport::Transport;
use crate::output::aims::{self, Aim};
use crate::output::papers::Published;

/// An experiment.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// Its name in commands.
    pub name: &'static str,
    /// Its name in rows, if that differs; commands accept it as well.
    pub alias: Option<&'static str>,
    /// Its line in the help.
    pub about: &'static str,
    /// All its cases.
    pub(crate) cases: fn(&Sweep<'_>) -> anyhow::Result<Vec<Case>>,
    /// The roles of the processes that it starts, except roles that another experiment lists.
    pub(crate) roles: &'static [Role],
    /// Transports over which it is measured unless the command names others.
    pub(crate) transports: &'static [Transport],
    /// Transports that a command may name.
    pub(crate) allowed: &'static [Transport],
    /// Sizes of messages unless the command names others; empty if sizes cannot be chosen.
    pub(crate) sizes: &'static [u16],
    /// MiB of items in its tables, unless the command names another size; `None` if it has no
    /// tables.
    #[cfg(feature = "kv")]
    pub(crate) items_mib: Option<u32>,
    /// How long all rounds take by default. For long simulations, the time of all cases in one
    /// round.
    pub usual_time: Duration,
    /// The number of rounds by default.
    pub usual_runs: u32,
    /// True if `all` runs it.
    pub is_in_all: bool,
    /// True if `dunlin bench compare` can measure its cases with another build, one by one.
    pub is_compared: bool,
    /// Its part of the page of results; `None` if its rows are in other parts.
    pub section: Option<Section>,
    /// Makes charts of its rows.
    pub(crate) charts: fn(&[&Row]) -> Vec<Picture>,
    /// Figures of papers.
    pub published: &'static [Published],
    /// Makes the lines below the table that depend on several rows.
    pub findings: fn(&[Row]) -> Vec<String>,
    /// Aims of its rows.
    pub(crate) aims: &'static [Aim],
}

/// A part of the page of results: its title, and the facts that a reader needs to judge the
/// figures.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its title.
    pub title: &'static str,
    /// Describes the subject and the baseline, and how the papers measured the same thing.
    pub text: &'static str,
}

/// The user's choices, from which an experiment makes its cases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sweep<'a> {
    pub(crate) transports: &'a [Transport],
    pub(crate) sizes: &'a [u16],
    /// True if the user chose the sizes.
    pub(crate) are_sizes_chosen: bool,
    /// 0 for an experiment without tables.
    #[cfg(feature = "kv")]
    pub(crate) items_mib: u32,
}

impl Experiment {
    /// Default values, for the fields that an experiment's constant leaves out.
    pub(crate) const BASE: Self = Self {
        name: "",
        alias: None,
        about: "",
        cases: |_| Ok(Vec::new()),
        roles: &[],
        transports: &[Transport::Shm, Transport::Udp],
        allowed: &Transport::ALL,
        sizes: &[],
        #[cfg(feature = "kv")]
        items_mib: None,
        usual_time: Duration::from_secs(60),
        usual_runs: 7,
        is_in_all: true,
        is_compared: true,
        section: None,
        charts: |_| Vec::new(),
        published: &[],
        findings: |_| Vec::new(),
        aims: &[],
    };

    /// Its name in rows.
    pub fn row_name(&self) -> &'static str {
        self.alias.unwrap_or(self.name)
    }

    /// True if this row belongs to it.
    pub fn owns(&self, row: &Row) -> bool {
        row.experiment == self.row_name()
    }

    /// True if its sizes can be chosen.
    pub fn is_sized(&self) -> bool {
        !self.sizes.is_empty()
    }

    /// True if the size of its tables can be chosen.
    #[cfg(feature = "kv")]
    pub const fn has_tables(&self) -> bool {
        self.items_mib.is_some()
    }

    /// Its cases, over the chosen transports and with the chosen sizes.
    ///
    /// # Errors
    /// [`harness::signal::Interrupted`], or the instructions that a case shows could not be
    /// counted.
    pub fn cases(&self, selection: &Selection) -> anyhow::Result<Vec<Case>> {
        selection.use_ends()?;
        let sweep = Sweep {
            transports: &selection.transports(self.transports),
            sizes: selection.sizes().unwrap_or(self.sizes),
            are_sizes_chosen: selection.sizes().is_some(),
            #[cfg(feature = "kv")]
            items_mib: selection.items_mib().or(self.items_mib).unwrap_or(0),
        };
        let mut cases = (self.cases)(&sweep)?;
        selection.keep(&mut cases);
        Ok(cases)
    }

    /// The reason why it cannot be measured over the chosen transports, if there is one.
    pub fn refusal(&self, selection: &Selection) -> Option<String> {
        let transports = selection.transports(self.transports);
        let names: Vec<&str> = self.allowed.iter().map(|it| it.name()).collect();
        let is_refused = transports.iter().any(|it| !self.allowed.contains(it));
        is_refused.then(|| match &names[..] {
            [] => format!("{} is measured without a transport", self.name),
            names => format!("{} is measured over {}", self.name, names.join(" and ")),
        })
    }

    /// The lines about its rows among these: what depends on several rows, and which aims are
    /// reached.
    pub(crate) fn lines(&self, rows: &[Row]) -> Vec<String> {
        let own: Vec<Row> = rows.iter().filter(|row| self.owns(row)).cloned().collect();
        [(self.findings)(rows), aims::lines(self.aims, &own)].concat()
    }

    /// Its charts of these rows, without empty charts.
    pub fn charts(&self, rows: &[Row]) -> Vec<Picture> {
        let rows: Vec<&Row> = rows.iter().filter(|row| self.owns(row)).collect();
        let has_lines = |picture: &Picture| match picture {
            Picture::Lines(chart) => chart.lines.iter().any(|line| line.kind == Kind::Measured),
            Picture::Bars(bars) => !bars.bars.is_empty(),
        };
        let charts = (self.charts)(&rows).into_iter();
        charts.filter(has_lines).collect()
    }
}
