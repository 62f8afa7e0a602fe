//! `dunlin config`: every option for operators, with its value, the source of the value, its unit,
//! range and meaning (design §11).

use std::fmt::Write as _;

use dunlin::settings::{Entry, Source};
use serde::Serialize;

use crate::commands::options::OptionArgs;
use crate::say::print;

const EXAMPLES: &str = "\
Examples:
  dunlin config                                  every option: value, source, unit, range, meaning
  dunlin config udp session                      the options of two groups
  dunlin config --file my.toml udp.gro           the value for a program that loads this file
  dunlin config --toml > dunlin.toml             a file to edit: defaults are comments
  dunlin config --json | jq -r 'select(.source.kind != \"default\") | .name'
  DUNLIN_ENDPOINT_IDLE=spin dunlin config endpoint.idle

Values come from the file (--file, or the one that DUNLIN_CONFIG names), then from DUNLIN_*
variables, then from --set; the last one wins. A number may have a unit (5 ms, 64 MiB, 25 Gbit/s);
without one, it counts in the listed unit. An unknown option or a wrong value is refused,
and the message names its place. Programs load options in the same way with dunlin::Settings.

Exit codes: 0, all is well; 1, the output cannot be written; 2, an option or the usage is wrong.";

/// The arguments of `dunlin config`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// Show options whose names begin like this
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    options: OptionArgs,
    /// One JSON object per option
    #[arg(long, conflicts_with = "toml")]
    json: bool,
    /// Prints a configuration file, with each option that is not set as a comment
    #[arg(long)]
    toml: bool,
}

/// An option in JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    value: &'a str,
    default: &'a str,
    source: ShownSource<'a>,
    unit: &'a str,
    range: String,
    meaning: &'a str,
    variable: String,
    /// The option whose value this one takes unless it is set itself.
    follows: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum ShownSource<'a> {
    Default,
    File {
        file: &'a str,
        line: usize,
        column: usize,
    },
    Variable {
        name: &'a str,
    },
    Flag {
        name: &'a str,
    },
}

/// Prints the chosen options.
///
/// # Errors
/// [`dunlin::settings::SettingsError`]; a name that is not the beginning of an option's name; or
/// the output is closed.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.options.load()?;
    settings.check()?;
    for name in &args.names {
        if !settings.entries().any(|entry| is_in(name, &entry)) {
            // The error names a similar option.
            settings.clone().with_from("NAME", name, "")?;
        }
    }
    let is_shown =
        |entry: &Entry| args.names.is_empty() || args.names.iter().any(|name| is_in(name, entry));
    let entries: Vec<Entry> = settings.entries().filter(is_shown).collect();
    let text = match (args.json, args.toml) {
        (true, _) => json(&entries)?,
        (_, true) => toml(&entries),
        _ => table(&entries),
    };
    print(&text)
}

/// True if the name stands for the option, or for a group that contains it.
fn is_in(name: &str, entry: &Entry) -> bool {
    let rest = entry
        .setting
        .name()
        .strip_prefix(name.trim_end_matches('.'));
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn json(entries: &[Entry]) -> serde_json::Result<String> {
    let mut text = String::new();
    for entry in entries {
        let source = match &entry.source {
            Source::Default => ShownSource::Default,
            Source::File { file, line, column } => ShownSource::File {
                file,
                line: *line,
                column: *column,
            },
            Source::Variable(name) => ShownSource::Variable { name },
            Source::Program(name) => ShownSource::Flag { name },
        };
        text += &serde_json::to_string(&Row {
            name: entry.setting.name(),
            value: &entry.value,
            default: &entry.default,
            source,
            unit: entry.setting.unit(),
            range: entry.setting.range(),
            meaning: entry.setting.meaning(),
            variable: entry.setting.variable(),
            follows: entry.setting.follows(),
        })?;
        text.push('\n');
    }
    Ok(text)
}

/// Columns as wide as their longest cell; the last is not padded.
fn table(entries: &[Entry]) -> String {
    let cells = |entry: &Entry| {
        let unit = match entry.setting.unit() {
            "" => "-",
            unit => unit,
        };
        [
            entry.setting.name().to_owned(),
            entry.value.clone(),
            entry.source.to_string(),
            unit.to_owned(),
            entry.setting.range(),
            entry.setting.meaning().to_owned(),
        ]
    };
    let head = ["option", "value", "source", "unit", "range", "meaning"].map(str::to_owned);
    let rows: Vec<[String; 6]> = std::iter::once(head)
        .chain(entries.iter().map(cells))
        .collect();
    let width = |column: usize| {
        let lengths = rows.iter().map(|row| row[column].chars().count());
        lengths.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..5).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (cell, &width) in row.iter().zip(&widths) {
            let _ = write!(text, "{cell:width$}  ");
        }
        text += &row[5];
        text.push('\n');
    }
    text
}

/// A configuration file with these entries, which can be edited.
fn toml(entries: &[Entry]) -> String {
    let mut text = String::new();
    for entry in entries {
        let (setting, value) = (entry.setting, &entry.value);
        let unit = match setting.unit() {
            "" | "count" => String::new(),
            unit => format!("; a plain number counts {unit}"),
        };
        let comment = if entry.source == Source::Default {
            "# "
        } else {
            ""
        };
        let (name, meaning, range) = (setting.name(), setting.meaning(), setting.range());
        let _ = write!(
            text,
            "# {meaning}\n# {range}{unit}\n{comment}{name} = {}\n\n",
            toml::Value::from(value.as_str()),
        );
    }
    text
}
