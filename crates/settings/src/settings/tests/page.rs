//! `docs/configuration.md` lists every row of the table. After a change of the table,
//! `DUNLIN_BLESS=1 cargo test -p dunlin-settings --lib` rewrites the list.

use std::fmt::Write;

use crate::{Settings, table};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");

/// The list follows this line, to the end of the page.
const BEGIN: &str = "## Every option\n";

/// All options as tables, one for each group.
fn list() -> String {
    let mut text = String::new();
    let settings = Settings::default();
    for group in table::GROUPS {
        let Some((name, _)) = group.first().and_then(|first| first.name().split_once('.')) else {
            continue;
        };
        let _ = write!(
            text,
            "\n### {name}\n\n| option | default | values | meaning |\n|---|---|---|---|\n"
        );
        for setting in group {
            let entry = settings.get(setting.name()).unwrap();
            let default = match setting.follows() {
                Some(name) => format!("as `{name}`"),
                None => entry.default,
            };
            let unit = match setting.unit() {
                "" | "count" => String::new(),
                unit => format!(" (in {unit})"),
            };
            let (name, range, meaning) = (setting.name(), setting.range(), setting.meaning());
            let _ = writeln!(text, "| `{name}` | {default} | {range}{unit} | {meaning} |");
        }
    }
    text
}

#[test]
fn the_page_lists_every_option_as_the_table_has_it() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, listed) = page.split_once(BEGIN).unwrap();
    let list = list();
    if std::env::var_os("DUNLIN_BLESS").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{list}")).unwrap();
        return;
    }
    for (line, expected) in listed.lines().zip(list.lines()) {
        assert_eq!(line, expected, "DUNLIN_BLESS=1 writes the list anew");
    }
    assert_eq!(listed, list, "DUNLIN_BLESS=1 writes the list anew");
}

#[test]
fn the_file_that_the_page_shows_can_be_loaded() {
    let page = std::fs::read_to_string(PAGE).unwrap();
    let shown = page.split("```toml\n").nth(1).unwrap();
    let file = shown.split("```").next().unwrap();
    let settings = Settings::default().with_toml("shown", file).unwrap();
    settings.check().unwrap();
    assert!(
        settings
            .entries()
            .filter(|entry| entry.value != entry.default)
            .count()
            > 3
    );
}
