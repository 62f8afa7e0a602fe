//! The lists of `deny.toml`. It uses little of TOML: sections, and lists of texts, which may have
//! several lines. Called by `deny`.

use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};

/// The content of `deny.toml`.
#[derive(PartialEq, Eq, Default, Debug)]
pub(super) struct Rules {
    /// Licences that a package may have.
    pub(super) licences: Vec<String>,
    /// Registries from which a package may come.
    pub(super) sources: Vec<String>,
    /// For some libraries, the only crates that may use them.
    pub(super) users: BTreeMap<String, Vec<String>>,
}

impl Rules {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let mut rules = Self::default();
        let mut section = String::new();
        let mut entry = String::new();
        for line in text.lines() {
            // No text in this file has this character.
            let line = line.split('#').next().unwrap_or_default().trim();
            let name = line.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
            if let Some(name) = name.filter(|_| entry.is_empty()) {
                name.clone_into(&mut section);
                continue;
            }
            entry += line;
            if entry.ends_with(']') {
                rules.add(&section, &entry)?;
                entry.clear();
            }
        }
        ensure!(entry.is_empty(), "deny.toml: a list has no end: {entry}");
        Ok(rules)
    }

    /// Adds a list, `key = ["one", "two"]`.
    fn add(&mut self, section: &str, entry: &str) -> anyhow::Result<()> {
        let wrong = || format!("deny.toml: `{entry}` is not `name = [\"text\", …]`");
        let (key, list) = entry.split_once('=').with_context(wrong)?;
        let list = list.replace(",]", "]");
        let list: Vec<String> = serde_json::from_str(&list).with_context(wrong)?;
        match (section, key.trim()) {
            ("licences", "allow") => self.licences = list,
            ("sources", "allow") => self.sources = list,
            ("users", library) => {
                self.users.insert(library.to_owned(), list);
            }
            (_, key) => bail!("deny.toml: [{section}] has no meaning for `{key}`"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
