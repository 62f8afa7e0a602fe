//! The forms of a look-up, and the function that runs each: the only one whose time and whose
//! instructions are measured.

use serde::{Deserialize, Serialize};

use gopt::Batch;
use gopt_lookups::work::Work;
use gopt_lookups::{Lookup, forms};

/// The name of [`run_form`], by which callgrind finds it and its like.
pub(super) const MEASURED: &str = "run_form";

/// Which code runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Form {
    Plain,
    Gopt,
    Hand,
    /// Of Aho-Corasick, which has no form `gopt`.
    Batch,
    /// No look-up: random lines, in groups.
    Lines,
}

/// A form at a width.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) form: Form,
    /// Look-ups at a time, 1 to 64; `None` for `plain`.
    pub(super) batch: Option<usize>,
}

impl Form {
    /// Its name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gopt => "gopt",
            Self::Hand | Self::Lines => "hand",
            Self::Batch => "batch",
        }
    }

    /// True for group prefetching around look-ups.
    pub(super) const fn is_by_hand(self) -> bool {
        matches!(self, Self::Hand)
    }

    /// The form that it is compared with.
    pub(super) const fn baseline(self) -> Option<Self> {
        match self {
            Self::Plain | Self::Lines => None,
            Self::Gopt | Self::Hand | Self::Batch => Some(Self::Plain),
        }
    }
}

impl Cell {
    /// The cells of these forms, the first of which has no width.
    pub(super) fn of(plain: Form, batched: &[Form], widths: &[usize]) -> Vec<Self> {
        let at_widths = |&form: &Form| {
            let cell = move |&width: &usize| Self {
                form,
                batch: Some(width),
            };
            widths.iter().map(cell)
        };
        let plain = Self {
            form: plain,
            batch: None,
        };
        std::iter::once(plain)
            .chain(batched.iter().flat_map(at_widths))
            .collect()
    }

    /// Look-ups at a time; 1 for `plain`.
    pub(super) fn width(self) -> usize {
        self.batch.unwrap_or(1)
    }
}

/// Looks all items up in one form.
#[inline(never)]
pub(super) fn run_form<L: Lookup, W: Work<L::Key, L::Value>>(
    cell: Cell,
    table: &L,
    work: &W,
    items: &[W::Item],
    out: &mut [W::Out],
) {
    let width = cell.width();
    match cell.form {
        Form::Plain => forms::plain(table, work, items, out),
        Form::Hand | Form::Lines | Form::Batch => forms::hand(width, table, work, items, out),
        Form::Gopt => {
            let batch = Batch::<{ gopt::MAX_WIDTH }>::with_width(width);
            let batch = batch.expect("widths are checked where they are read");
            forms::gopt(batch, table, work, items, out);
        }
    }
}
