//! A TOML file as a list of keys and values with their places. Tables only group: `[endpoint]`
//! with `rto_floor = …` is the same as `endpoint.rto_floor = …`.

use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use crate::error::{SettingsError, Source};

/// A key, its place, and its value.
#[derive(Debug)]
pub(super) struct KeyValue {
    /// The key with all of its tables, joined by dots.
    pub(super) key: String,
    pub(super) key_at: Source,
    pub(super) value_at: Source,
    /// `None` if the value is not a number, a text, a switch or a list of texts.
    pub(super) value: Option<String>,
}

/// All keys of a file, in order of their names.
///
/// # Errors
/// If the text is not TOML; the error has the place, and what was expected there.
pub(super) fn read(name: &Arc<str>, text: &str) -> Result<Vec<KeyValue>, SettingsError> {
    let places = Places { name, text };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        SettingsError::one(places.source(&at), error.message().to_owned())
    })?;
    let mut entries = Vec::new();
    flatten(table.get_ref(), "", &places, &mut entries);
    Ok(entries)
}

struct Places<'a> {
    name: &'a Arc<str>,
    text: &'a str,
}

impl Places<'_> {
    fn source(&self, span: &Range<usize>) -> Source {
        let before = &self.text[..self.text.floor_char_boundary(span.start)];
        let line = before.rsplit_once('\n').map_or(before, |(_, line)| line);
        Source::File {
            file: Arc::clone(self.name),
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
        }
    }
}

fn flatten(table: &DeTable<'_>, prefix: &str, places: &Places<'_>, out: &mut Vec<KeyValue>) {
    for (name, value) in table {
        let key = match prefix {
            "" => name.get_ref().to_string(),
            _ => format!("{prefix}.{}", name.get_ref()),
        };
        match value.get_ref() {
            DeValue::Table(inner) if !inner.is_empty() => flatten(inner, &key, places, out),
            DeValue::Table(inner) if crate::settings::is_group(&key) && inner.is_empty() => {}
            other => out.push(KeyValue {
                key,
                key_at: places.source(&name.span()),
                value_at: places.source(&value.span()),
                value: scalar(other),
            }),
        }
    }
}

/// The value as text, as in an environment variable.
fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(on) => Some(on.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Integer(number) => {
            let digits = number.as_str().replace('_', "");
            // A number too large for any field is refused later; the message shows it as the user
            // wrote it.
            let known = u64::from_str_radix(&digits, number.radix()).ok();
            Some(known.map_or(digits, |number| number.to_string()))
        }
        // Only options that are lists accept the brackets.
        DeValue::Array(values) => {
            let values = values.iter().map(|value| match value.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                _ => None,
            });
            let values: Option<Vec<String>> = values.collect();
            values.map(|values| format!("[{}]", values.join(", ")))
        }
        DeValue::Datetime(_) | DeValue::Table(_) => None,
    }
}
