//! The budget file and the comparison with it: pure functions of text and numbers.

use anyhow::{Context, bail, ensure};

/// A budget that is so much above what is measured, as a part of it, could be lowered.
const SLACK: f64 = 0.03;

/// One line of the budget file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Budget {
    pub(super) name: String,
    /// Most instructions per RPC, both sides together.
    pub(super) instructions: u32,
}

/// How a measurement compares with its budget.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    Above,
    Within,
    /// By more than the slack.
    Below,
}

impl Budget {
    /// The budget with this name.
    pub(super) fn find<'a>(budgets: &'a [Self], name: &str) -> anyhow::Result<&'a Self> {
        let found = budgets.iter().find(|budget| budget.name == name);
        found.with_context(|| format!("budget.toml has no number for `{name}`"))
    }

    pub(super) fn judge(&self, measured: f64) -> Verdict {
        let budget = f64::from(self.instructions);
        if measured > budget {
            Verdict::Above
        } else if measured < budget * (1.0 - SLACK) {
            Verdict::Below
        } else {
            Verdict::Within
        }
    }

    /// What is to be done about a measurement; `None`: nothing.
    pub(super) fn advice(&self, measured: f64) -> Option<String> {
        let Self { name, instructions } = self;
        match self.judge(measured) {
            Verdict::Above => Some(format!(
                "OVER BUDGET: `{name}` takes {measured:.1} instructions per RPC and may take \
                 {instructions}. Find what was added (valgrind --tool=callgrind, \
                 callgrind_annotate). Raising the number in budget.toml needs a page in \
                 docs/decisions/ that says what the instructions buy."
            )),
            Verdict::Within => None,
            Verdict::Below => Some(format!(
                "`{name}` takes {measured:.1} instructions per RPC; lower its budget of \
                 {instructions} to {:.0}, so that the gain is not lost again.",
                measured.ceil()
            )),
        }
    }
}

/// The lines `name = number` of the section `[instructions_per_rpc]`.
pub(super) fn parse(text: &str) -> anyhow::Result<Vec<Budget>> {
    let mut budgets: Vec<Budget> = Vec::new();
    let mut is_ours = false;
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.starts_with('[') {
            is_ours = line == "[instructions_per_rpc]";
            ensure!(is_ours, "budget.toml: unknown section {line}");
        } else if !line.is_empty() {
            ensure!(is_ours, "budget.toml: `{line}` stands in no section");
            let (name, number) = line
                .split_once('=')
                .with_context(|| format!("budget.toml: `{line}` is not `name = number`"))?;
            let instructions = number
                .trim()
                .parse()
                .with_context(|| format!("budget.toml: `{line}` has no whole number"))?;
            let name = name.trim().to_owned();
            if budgets.iter().any(|budget| budget.name == name) {
                bail!("budget.toml: `{name}` stands there twice");
            }
            budgets.push(Budget { name, instructions });
        }
    }
    Ok(budgets)
}

/// The number of instructions in what callgrind prints at its end.
pub(super) fn collected(log: &str) -> Option<u64> {
    let line = log.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(':').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests;
