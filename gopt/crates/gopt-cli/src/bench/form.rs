//! The forms of a look-up, and the function that runs each form: the only function whose time and
//! instructions are measured.

use serde::{Deserialize, Serialize};

use gopt::Batch;
use gopt_lookups::c::{self, CForm, InC};
use gopt_lookups::forms;
use gopt_lookups::work::{Handled, Handler, Packet, Tight, Work};

/// The name of [`run_form`], by which callgrind finds all its instances.
pub(super) const MEASURED: &str = "run_form";

/// The code that runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) enum Form {
    Plain,
    Gopt,
    Hand,
    CPlain,
    CGopt,
    CHand,
    /// The batched form of Aho-Corasick, which has no forms `gopt` and `hand`.
    Batch,
    CBatch,
    /// Not a look-up: reads random lines, in groups.
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
    /// The form's name in rows.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Gopt => "gopt",
            Self::Hand | Self::Lines => "hand",
            Self::CPlain => "c-plain",
            Self::CGopt => "c-gopt",
            Self::CHand => "c-hand",
            Self::Batch => "batch",
            Self::CBatch => "c-batch",
        }
    }

    /// The form with which this one is compared.
    pub(super) const fn baseline(self) -> Option<Self> {
        match self {
            Self::Plain | Self::Lines => None,
            Self::Gopt | Self::Hand | Self::Batch | Self::CPlain => Some(Self::Plain),
            Self::CGopt | Self::CHand | Self::CBatch => Some(Self::CPlain),
        }
    }

    /// True for group prefetching around look-ups.
    pub(super) const fn is_by_hand(self) -> bool {
        matches!(self, Self::Hand | Self::CHand)
    }

    /// True if there is code for this width. In C, only a few widths have code.
    fn exists_at(self, width: usize) -> bool {
        !matches!(self, Self::CGopt | Self::CHand) || c::WIDTHS.contains(&width)
    }
}

impl Cell {
    /// One look-up after the other.
    pub(super) const fn single(form: Form) -> Self {
        Self { form, batch: None }
    }

    /// A form at each of these widths for which it exists.
    pub(super) fn batched(form: Form, widths: &[usize]) -> impl Iterator<Item = Self> {
        let widths = widths.iter().filter(move |&&width| form.exists_at(width));
        widths.map(move |&width| Self {
            form,
            batch: Some(width),
        })
    }

    /// Look-ups at a time; 1 for `plain`.
    pub(super) fn width(self) -> usize {
        self.batch.unwrap_or(1)
    }
}

/// A shape whose look-ups also exist in C.
pub(super) trait WorkInC<L: InC>: Work<L::Key, L::Value> {
    /// Looks all items up.
    fn in_c(
        &self,
        form: CForm,
        width: usize,
        table: &L,
        items: &[Self::Item],
        out: &mut [Self::Out],
    );
}

impl<L: InC> WorkInC<L> for Tight {
    fn in_c(&self, form: CForm, width: usize, table: &L, items: &[L::Key], out: &mut [L::Value]) {
        table.tight_in_c(form, width, items, out);
    }
}

impl<L: InC> WorkInC<L> for Handler {
    fn in_c(
        &self,
        form: CForm,
        width: usize,
        table: &L,
        items: &[Packet<L::Key>],
        out: &mut [Handled<L::Value>],
    ) {
        table.handler_in_c(form, width, items, out);
    }
}

/// Looks all items up in one form.
#[inline(never)]
pub(super) fn run_form<L: InC, W: WorkInC<L>>(
    cell: Cell,
    table: &L,
    work: &W,
    items: &[W::Item],
    out: &mut [W::Out],
) {
    let width = cell.width();
    match cell.form {
        Form::Plain => forms::plain(table, work, items, out),
        Form::Gopt => {
            let batch = Batch::<{ gopt::MAX_WIDTH }>::with_width(width);
            let batch = batch.expect("widths are checked where they are read");
            forms::gopt(batch, table, work, items, out);
        }
        Form::Hand => forms::hand(width, table, work, items, out),
        Form::CPlain => work.in_c(CForm::Plain, width, table, items, out),
        Form::CGopt => work.in_c(CForm::Gopt, width, table, items, out),
        Form::CHand => work.in_c(CForm::Hand, width, table, items, out),
        Form::Batch | Form::CBatch | Form::Lines => unreachable!("no table has this form"),
    }
}
