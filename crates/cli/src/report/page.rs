//! The page: head, key figures, a section for each experiment with rows, and a list of the others.

mod figures;
mod tables;

use std::fmt::Write as _;

use dunlin_bench::experiments;
use dunlin_bench::harness::experiment::{Experiment, Section};
use harness::draw::{self, escape};
use harness::machine::Origin;
use harness::row::{ENOUGH, Row};

/// The style of the page around the charts.
const STYLE: &str = include_str!("page/page.css");

/// A part of the page: an experiment that has a section.
struct Part {
    experiment: &'static Experiment,
    section: Section,
}

/// The whole page.
pub(super) fn render(rows: &[Row], alarms: &[String]) -> String {
    let has_rows = |part: &Part| rows.iter().any(|row| part.experiment.owns(row));
    let (measured, missing): (Vec<Part>, Vec<Part>) = parts().partition(has_rows);
    let mut out = String::new();
    out += "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
            <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
            <meta name=\"color-scheme\" content=\"light dark\">\n\
            <title>Dunlin, measured</title>\n";
    let _ = writeln!(
        out,
        "<style>\n{}{STYLE}</style>\n</head>\n<body>",
        draw::STYLE
    );
    head(&mut out, rows, &measured);
    out += "<main>\n";
    figures::tiles(&mut out, rows);
    for part in measured {
        part.render(&mut out, rows);
    }
    notes(&mut out, &missing, alarms);
    out += "</main>\n</body>\n</html>\n";
    out
}

fn head(out: &mut String, rows: &[Row], measured: &[Part]) {
    *out += "<header>\n<h1>Dunlin, measured</h1>\n\
             <p class=\"lead\">Each figure is a median, next to its baseline: what the same \
             machine did at the same time without the library. The ratio of the two is what \
             counts.</p>\n";
    *out += "<dl class=\"origin\">\n";
    for origin in origins(rows) {
        let commit = match &origin.commit {
            Some(commit) => format!("commit {commit}"),
            None => "commit unknown".to_owned(),
        };
        let Origin {
            machine,
            dunlin,
            build,
            ..
        } = origin;
        let count = rows.iter().filter(|row| row.run == *origin).count();
        let _ = writeln!(
            out,
            "<div><dt>{}</dt><dd>dunlin {}, {}, {} build; {}</dd></div>",
            escape(machine),
            escape(dunlin),
            escape(&commit),
            escape(build),
            counted(count, "row")
        );
    }
    *out += "</dl>\n";
    let invalid = rows.iter().filter(|row| !row.valid).count();
    if invalid > 0 {
        let _ = writeln!(
            out,
            "<p class=\"warning\">{} of {} rows are marked invalid: their baselines show that the \
             machine was disturbed. They are drawn hollow or pale, and may be wrong.</p>",
            invalid,
            rows.len()
        );
    }
    let few = rows.iter().filter(|row| row.shortage().is_some()).count();
    if few > 0 {
        let _ = writeln!(
            out,
            "<p class=\"warning\">{few} of {} rows are marked \"not measured\": fewer than \
             {ENOUGH} of their rounds count.</p>",
            rows.len()
        );
    }
    *out += "<nav>\n";
    for Part {
        experiment,
        section,
    } in measured
    {
        let (id, title) = (experiment.row_name(), section.title);
        let _ = writeln!(out, "<a href=\"#{id}\">{title}</a>");
    }
    *out += "</nav>\n<p class=\"how\">Dots are medians, the strokes through them reach from the \
             smallest to the largest round. Dashed lines are baselines. Diamonds are figures that \
             the papers have published, from other machines and other networks. The figures of \
             a dot appear when the pointer rests on it.</p>\n</header>\n";
}

/// The origins of the rows, each once.
fn origins(rows: &[Row]) -> Vec<&Origin> {
    let mut origins: Vec<&Origin> = Vec::new();
    for row in rows {
        if !origins.contains(&&row.run) {
            origins.push(&row.run);
        }
    }
    origins
}

/// All parts, in order.
fn parts() -> impl Iterator<Item = Part> {
    let part = |experiment: &'static Experiment| {
        let section = experiment.section?;
        Some(Part {
            experiment,
            section,
        })
    };
    experiments::ALL.iter().filter_map(part)
}

impl Part {
    fn render(&self, out: &mut String, rows: &[Row]) {
        let Self {
            experiment,
            section,
        } = self;
        let own: Vec<&Row> = rows.iter().filter(|row| experiment.owns(row)).collect();
        let _ = writeln!(
            out,
            "<section id=\"{}\">\n<h2>{}</h2>\n<p>{}</p>",
            experiment.row_name(),
            section.title,
            section.text
        );
        let charts = experiment.charts(rows);
        if !charts.is_empty() {
            *out += "<div class=\"charts\">\n";
            for chart in charts {
                let _ = writeln!(out, "<figure>\n{}</figure>", chart.svg());
            }
            *out += "</div>\n";
        }
        tables::published(out, experiment.published, &own);
        tables::all(out, &own);
        let _ = writeln!(
            out,
            "<p class=\"again\">Measure it again: <code>{}</code></p>\n</section>",
            self.command()
        );
    }

    /// The command that makes the rows of this part.
    fn command(&self) -> String {
        format!("dunlin bench {}", self.experiment.name)
    }
}

/// A list of missing parts, and of unexpected events.
fn notes(out: &mut String, missing: &[Part], alarms: &[String]) {
    if !missing.is_empty() {
        *out += "<section id=\"missing\">\n<h2>Not measured</h2>\n<p>There are no rows of these \
                 experiments, so nothing is drawn of them.</p>\n<ul>\n";
        for part in missing {
            let (title, command) = (part.section.title, part.command());
            let _ = writeln!(out, "<li>{title}: <code>{command} --json FILE</code></li>");
        }
        *out += "</ul>\n</section>\n";
    }
    if !alarms.is_empty() {
        *out += "<section id=\"notes\">\n<h2>Notes of the run</h2>\n<ul>\n";
        for alarm in alarms {
            let _ = writeln!(out, "<li>{}</li>", escape(alarm));
        }
        *out += "</ul>\n</section>\n";
    }
}

/// A count with its noun.
fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
