//! Words that new lines of prose may not contain (convention 17): they read as translated, or hide
//! the part of the program that acts. Old lines keep such words until they are rewritten. String
//! literals and names of functions (`code.rs`) may not contain them even in old lines: messages,
//! panics and names of tests are read like comments.

mod code;

use super::Finding;
use super::changes::Old;
use super::prose::{self, Line};
use super::tree::{File, Tree};

/// Refused words, in lower case, and the advice for each.
const PHRASES: [(&[&str], &str); 12] = [
    (&["who"], ACTOR),
    (&["whom"], ACTOR),
    (&["whoever"], ACTOR),
    (&["somebody"], ACTOR),
    (&["nobody"], ACTOR),
    (&["anybody"], ACTOR),
    (&["so", "many"], "name the number or the count"),
    (&["its", "like"], "name the things"),
    (&["their", "like"], "name the things"),
    (&["is", "told"], "say what is passed, returned or called"),
    (&["hears"], "use receives, or the call that happens"),
    (&["says", "of"], "use describes, reports or states"),
];

const ACTOR: &str = "name the actor: peer, reader, caller, kernel, thread";

pub(super) fn check(tree: &Tree, old: &Old) -> Vec<Finding> {
    let prose = tree.files.iter().flat_map(|file| check_file(file, old));
    prose.chain(tree.rust().flat_map(code::check)).collect()
}

fn check_file(file: &File, old: &Old) -> Vec<Finding> {
    let sources: Vec<&str> = file.text.lines().collect();
    let is_new = |number: usize| !old.has(sources[number - 1]);
    let lines = prose::lines(file);
    let mut findings = Vec::new();
    for line in lines.iter().filter(|line| is_new(line.number)) {
        if line.opens_doc && line.text.starts_with("What ") {
            let what = "a doc comment does not open with \"What\": begin with the noun or the verb";
            findings.push(Finding::new(&file.path, line.number, what));
        }
    }
    let words = words(&lines);
    let is_new = |found: &[Word]| found.iter().any(|word| is_new(word.line));
    findings.extend(refused(file, &words, is_new));
    findings
}

/// The refused phrases among these words, if `counts` accepts their lines.
fn refused(file: &File, words: &[Word], counts: impl Fn(&[Word]) -> bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for at in 0..words.len() {
        for (phrase, advice) in PHRASES {
            let Some(found) = words.get(at..at + phrase.len()) else {
                continue;
            };
            let texts = found.iter().map(|word| word.text.as_str());
            if texts.eq(phrase.iter().copied()) && counts(found) {
                let what = format!("\"{}\": {advice}", phrase.join(" "));
                findings.push(Finding::new(&file.path, found[0].line, what));
            }
        }
    }
    findings
}

struct Word {
    text: String,
    line: usize,
}

/// All words of prose, in lower case. Code between backticks, and a gap between lines, count as a
/// word without text.
fn words(lines: &[Line<'_>]) -> Vec<Word> {
    let mut words = Vec::new();
    let mut last = 0;
    for line in lines {
        let mut add = |text: &str| {
            words.push(Word {
                text: text.to_lowercase(),
                line: line.number,
            });
        };
        if last + 1 != line.number {
            add("");
        }
        last = line.number;
        for (index, part) in line.text.split('`').enumerate() {
            if index % 2 == 1 {
                add("");
                continue;
            }
            let is_part = |c: char| c.is_alphanumeric() || c == '_';
            part.split(|c| !is_part(c))
                .filter(|word| !word.is_empty())
                .for_each(&mut add);
        }
    }
    words
}

#[cfg(test)]
mod tests;
