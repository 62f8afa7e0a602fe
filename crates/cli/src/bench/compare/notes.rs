//! Remarks of programs about their measurements. A program may have a remark in every round, each
//! with other numbers, so only the first remark for each case and program is kept.

use std::collections::BTreeMap;

use super::contract::Answer;

/// The first remark for each case and program, and the number of rounds with a remark.
#[derive(Debug, Default)]
pub(super) struct Notes(BTreeMap<[String; 2], (String, usize)>);

impl Notes {
    /// Adds the remarks of one answer, if it has any.
    pub(super) fn add(&mut self, case: &str, program: &str, answer: &Answer) {
        let refused = answer.unsupported.iter();
        let refused = refused.map(|why| format!("does not take part: {why}"));
        let said: Vec<String> = refused.chain(answer.notes.iter().cloned()).collect();
        if !said.is_empty() {
            let key = [case.to_owned(), program.to_owned()];
            let first = || (said.join("; "), 0);
            self.0.entry(key).or_insert_with(first).1 += 1;
        }
    }

    /// A line for each case and program.
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |([case, program], (said, rounds)): (&[String; 2], &(String, usize))| {
            let more = match rounds {
                1 => String::new(),
                rounds => format!(" (the first of {rounds} rounds with a note)"),
            };
            format!("{case}, {program}: {said}{more}")
        };
        self.0.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests;
