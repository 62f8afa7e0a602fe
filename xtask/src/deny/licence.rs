//! Licence expressions of packages (SPDX): names, `WITH`, `AND`, `OR` and parentheses. Old
//! packages write `/` for `OR`. Called by `deny`.

use std::iter::Peekable;

use anyhow::{Context, ensure};

/// Whether the terms can be met with these licences alone.
pub(super) fn is_allowed(terms: &str, licences: &[String]) -> anyhow::Result<bool> {
    let spaced = terms.replace('(', " ( ").replace(')', " ) ");
    let spaced = spaced.replace('/', " OR ");
    let mut words = spaced.split_whitespace().peekable();
    let is_allowed = one_of(&mut words, licences)?;
    ensure!(words.next().is_none(), "it goes on after its end");
    Ok(is_allowed)
}

/// Terms of which one must be met.
fn one_of<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    licences: &[String],
) -> anyhow::Result<bool> {
    let mut is_allowed = all_of(words, licences)?;
    while words.next_if_eq(&"OR").is_some() {
        is_allowed |= all_of(words, licences)?;
    }
    Ok(is_allowed)
}

/// Terms that must all be met.
fn all_of<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    licences: &[String],
) -> anyhow::Result<bool> {
    let mut is_allowed = single(words, licences)?;
    while words.next_if_eq(&"AND").is_some() {
        is_allowed &= single(words, licences)?;
    }
    Ok(is_allowed)
}

/// A licence, with its exception if it has one, or terms in parentheses.
fn single<'a>(
    words: &mut Peekable<impl Iterator<Item = &'a str>>,
    licences: &[String],
) -> anyhow::Result<bool> {
    let first = words.next().context("a name is missing")?;
    if first == "(" {
        let is_allowed = one_of(words, licences)?;
        ensure!(words.next() == Some(")"), "a parenthesis stays open");
        return Ok(is_allowed);
    }
    ensure!(
        !["AND", "OR", "WITH", ")"].contains(&first),
        "a name is missing before {first}"
    );
    let mut name = first.to_owned();
    if words.next_if_eq(&"WITH").is_some() {
        name += &format!(
            " WITH {}",
            words.next().context("the exception has no name")?
        );
    }
    Ok(licences.contains(&name))
}

#[cfg(test)]
mod tests;
