//! The picture of `top`: a line about the process, the endpoints, the sessions of the chosen one,
//! and next to them its times, its drops by reason, and the requests of the last minutes.

use dunlin_insight::{Group, Histogram};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row, Sparkline, Table as Grid, TableState};

use super::model::{Model, Table};
use crate::commands::stats::{Between, SESSION_COLUMNS, count, rate, session_cells, time};

/// The whole picture.
pub(super) fn draw(frame: &mut Frame<'_>, model: &Model) {
    let endpoints = model.endpoints();
    let rows = u16::try_from(endpoints.len())
        .unwrap_or(u16::MAX)
        .clamp(1, 12);
    let [head, table, below, keys] = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(rows.saturating_add(3)),
        Constraint::Min(6),
        Constraint::Length(1),
    ])
    .areas(frame.area());
    let [sessions, side] =
        Layout::horizontal([Constraint::Min(60), Constraint::Length(38)]).areas(below);
    let [times, drops, history] = Layout::vertical([
        Constraint::Length(6),
        Constraint::Min(3),
        Constraint::Length(5),
    ])
    .areas(side);
    frame.render_widget(heading(model), head);
    draw_endpoints(frame, table, model, &endpoints);
    draw_sessions(frame, sessions, model);
    if let Some(chosen) = endpoints.get(model.endpoint) {
        let own = u16::try_from(own_lines(chosen).len()).unwrap_or(u16::MAX);
        let own = if own == 0 { 0 } else { own.saturating_add(2) };
        let [drops, figures] =
            Layout::vertical([Constraint::Min(3), Constraint::Max(own)]).areas(drops);
        draw_times(frame, times, chosen);
        draw_drops(frame, drops, chosen);
        if own > 0 {
            let lines = Paragraph::new(own_lines(chosen));
            frame.render_widget(lines.block(framed(" program ")), figures);
        }
    }
    draw_history(frame, history, model);
    let hint = " up/down choose  tab table  s sort  r reverse  space hold  q quit";
    frame.render_widget(Paragraph::new(hint).dim(), keys);
}

fn heading(model: &Model) -> Paragraph<'_> {
    let Some(process) = model.after.first() else {
        return Paragraph::new("no nexus");
    };
    let held = if model.held { "  HELD" } else { "" };
    let text = format!(
        " process {} ({}) at {}, dunlin {}{held}",
        process.pid, process.program, process.address, process.release
    );
    Paragraph::new(text).bold()
}

/// A column: its heading, its width, and the text of a row.
type EndpointColumn = (&'static str, u16, fn(&Between<'_>) -> String);

/// The columns of an endpoint, the most important first.
const ENDPOINT_COLUMNS: [EndpointColumn; 11] = [
    ("endpoint", 10, |endpoint| {
        format!("{} {}", endpoint.after.index, endpoint.after.transport)
    }),
    ("sessions", 8, |endpoint| {
        count(endpoint.after.gauges.get("sessions"))
    }),
    ("out/s", 6, |endpoint| counted(endpoint, "requests_sent")),
    ("in/s", 6, |endpoint| counted(endpoint, "requests_received")),
    ("call 50 %", 9, |endpoint| called(endpoint, 0.5)),
    ("call 99 %", 9, |endpoint| called(endpoint, 0.99)),
    ("drops/s", 7, |endpoint| rate(endpoint.drops())),
    ("again/s", 7, |endpoint| {
        counted(endpoint, "retransmissions")
    }),
    ("pkts out/s", 10, |endpoint| counted(endpoint, "tx_packets")),
    ("pkts in/s", 9, |endpoint| counted(endpoint, "rx_packets")),
    ("stalls/s", 8, |endpoint| counted(endpoint, "stalls")),
];

fn counted(endpoint: &Between<'_>, name: &str) -> String {
    rate(endpoint.rate(Group::Counters, name))
}

fn called(endpoint: &Between<'_>, part: f64) -> String {
    time(endpoint.histogram("call").quantile(part))
}

fn draw_endpoints(frame: &mut Frame<'_>, area: Rect, model: &Model, endpoints: &[Between<'_>]) {
    let columns = ENDPOINT_COLUMNS.map(|(heading, width, _)| (heading, width));
    let cells = |endpoint| ENDPOINT_COLUMNS.map(|(.., cell)| cell(endpoint)).to_vec();
    let rows: Vec<Vec<String>> = endpoints.iter().map(cells).collect();
    let title = format!(" endpoints by {} ", model.orders()[0]);
    let chosen = (model.table == Table::Endpoints, model.endpoint);
    draw_grid(frame, area, &title, &columns, &rows, chosen);
}

fn draw_sessions(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let columns = SESSION_COLUMNS.map(|(heading, width, _)| (heading, width));
    let rows: Vec<Vec<String>> = model.sessions().iter().map(session_cells).collect();
    let title = format!(" busiest sessions by {} ", model.orders()[1]);
    let chosen = (model.table == Table::Sessions, model.session);
    draw_grid(frame, area, &title, &columns, &rows, chosen);
}

/// As many columns from the left as fit into a width, each with a gap before it.
fn fitting<'a>(columns: &'a [(&'a str, u16)], width: u16) -> &'a [(&'a str, u16)] {
    let mut taken = 0;
    let fits = |(_, width_of): &&(&str, u16)| {
        taken += width_of + 1;
        taken <= width + 1
    };
    let fitting = columns.iter().take_while(fits).count();
    &columns[..fitting.max(1)]
}

/// Draws a table with the columns that fit. The chosen row is marked, and bright if keys act on
/// this table.
fn draw_grid(
    frame: &mut Frame<'_>,
    area: Rect,
    title: &str,
    columns: &[(&str, u16)],
    rows: &[Vec<String>],
    (bright, chosen): (bool, usize),
) {
    let columns = fitting(columns, area.width.saturating_sub(2));
    let cells = |row: &Vec<String>| {
        let shown = row.iter().take(columns.len());
        Row::new(shown.enumerate().map(|(column, cell)| {
            let text = Text::from(cell.clone());
            Cell::from(if column == 0 {
                text
            } else {
                text.right_aligned()
            })
        }))
    };
    let head = columns.iter().map(|(heading, _)| heading.to_string());
    let head = head.collect();
    let highlight = match bright {
        true => Style::new().add_modifier(Modifier::REVERSED),
        false => Style::new().add_modifier(Modifier::UNDERLINED),
    };
    // The rest of the width is shared in proportion.
    let widths = columns.iter().map(|(_, width)| Constraint::Fill(*width));
    let grid = Grid::new(rows.iter().map(cells), widths)
        .header(cells(&head).bold())
        .row_highlight_style(highlight)
        .block(framed(title));
    let mut state = TableState::default();
    state.select((!rows.is_empty()).then_some(chosen));
    frame.render_stateful_widget(grid, area, &mut state);
}

fn draw_times(frame: &mut Frame<'_>, area: Rect, chosen: &Between<'_>) {
    let mut lines = vec![Line::from(format!(
        "{:10}{:>8}{:>9}{:>9}",
        "", "50 %", "99 %", "longest"
    ))];
    for (name, _) in &chosen.after.histograms {
        let times: Histogram = chosen.histogram(name);
        lines.push(Line::from(format!(
            "{name:10}{:>8}{:>9}{:>9}",
            time(times.quantile(0.5)),
            time(times.quantile(0.99)),
            time(times.longest()),
        )));
    }
    let title = format!(" times of endpoint {} ", chosen.after.index);
    frame.render_widget(Paragraph::new(lines).block(framed(&title)), area);
}

fn draw_drops(frame: &mut Frame<'_>, area: Rect, chosen: &Between<'_>) {
    let mut drops: Vec<(&str, u64)> = chosen.after.drops.iter().filter(|d| d.1 != 0).collect();
    drops.sort_by_key(|(_, number)| std::cmp::Reverse(*number));
    let mut lines: Vec<Line<'_>> = drops
        .iter()
        .map(|(reason, number)| {
            let per_second = rate(chosen.rate(Group::Drops, reason));
            Line::from(format!(
                "{reason:16}{:>10}{per_second:>8}/s",
                count(*number)
            ))
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::from("none").dim());
    }
    frame.render_widget(Paragraph::new(lines).block(framed(" drops ")), area);
}

/// The program's own figures: its gauges, then its counters that are not 0.
fn own_lines<'a>(chosen: &Between<'a>) -> Vec<Line<'a>> {
    let now = chosen.after.own_gauges.iter();
    let now = now.map(|(name, value)| Line::from(format!("{name:16}{:>10}", count(value))));
    let counters = chosen.after.own_counters.iter().filter(|it| it.1 != 0);
    let counters = counters.map(|(name, value)| {
        let per_second = rate(chosen.rate(Group::OwnCounters, name));
        Line::from(format!("{name:16}{:>10}{per_second:>8}/s", count(value)))
    });
    now.chain(counters).collect()
}

fn draw_history(frame: &mut Frame<'_>, area: Rect, model: &Model) {
    let width = usize::from(area.width.saturating_sub(2));
    let skip = model.history.len().saturating_sub(width);
    let rates: Vec<u64> = model.history.iter().skip(skip).copied().collect();
    // The conversion may round: the title shows three digits.
    let last = rates.last().map_or(0.0, |rate| *rate as f64);
    let title = format!(" requests {}/s ", rate(last));
    let line = Sparkline::default()
        .data(rates)
        .style(Style::new().fg(Color::Green))
        .block(framed(&title));
    frame.render_widget(line, area);
}

fn framed(title: &str) -> Block<'static> {
    Block::bordered().title(title.to_owned())
}
