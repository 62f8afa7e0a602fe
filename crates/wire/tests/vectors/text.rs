//! The text format of the golden vectors: blocks of `key: value` lines, separated by empty lines.

use std::fmt::{Display, Write};

/// One vector: its lines in order. The first is its name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Block {
    lines: Vec<(String, String)>,
}

impl Block {
    pub(crate) fn named(name: &str) -> Self {
        Self::default().with("name", name)
    }

    pub(crate) fn with(mut self, key: &str, value: impl Display) -> Self {
        self.lines.push((key.to_owned(), value.to_string()));
        self
    }

    /// Bytes as two hexadecimal digits each.
    pub(crate) fn with_bytes(self, key: &str, bytes: &[u8]) -> Self {
        let digits = bytes.iter().fold(String::new(), |mut digits, byte| {
            write!(digits, "{byte:02x}").expect("writing to a string does not fail");
            digits
        });
        self.with(key, digits)
    }

    /// Text in which control characters and `\` are written as `\xNN`.
    pub(crate) fn with_text(self, key: &str, text: &str) -> Self {
        let escaped = text.chars().fold(String::new(), |mut escaped, c| {
            if c.is_control() || c == '\\' {
                write!(escaped, "\\x{:02x}", u32::from(c))
                    .expect("writing to a string does not fail");
            } else {
                escaped.push(c);
            }
            escaped
        });
        self.with(key, escaped)
    }

    pub(crate) fn get(&self, key: &str) -> &str {
        let line = self.lines.iter().find(|(name, _)| name == key);
        &line.unwrap_or_else(|| panic!("{self:?} has no `{key}`")).1
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, key: &str) -> T {
        let value = self.get(key).parse().ok();
        value.unwrap_or_else(|| panic!("`{key}` of {self:?} is not a number"))
    }

    pub(crate) fn bytes(&self, key: &str) -> Vec<u8> {
        let digits = self.get(key);
        assert!(
            digits.is_ascii() && digits.len().is_multiple_of(2),
            "`{key}` of {self:?}"
        );
        let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16);
        let bytes: Result<_, _> = (0..digits.len()).step_by(2).map(byte).collect();
        bytes.unwrap_or_else(|e| panic!("`{key}` of {self:?}: {e}"))
    }
}

pub(crate) fn render(heading: &str, blocks: &[Block]) -> String {
    let mut text = format!("# {heading}\n# The format is described in README.md.\n");
    for block in blocks {
        text.push('\n');
        for (key, value) in &block.lines {
            text.push_str(format!("{key}: {value}").trim_end());
            text.push('\n');
        }
    }
    text
}

pub(crate) fn parse(text: &str) -> Vec<Block> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let lines: Vec<&str> = lines.collect();
    lines
        .split(|line| line.is_empty())
        .filter(|lines| !lines.is_empty())
        .map(block)
        .collect()
}

fn block(lines: &[&str]) -> Block {
    lines.iter().fold(Block::default(), |block, line| {
        let (key, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("no key in {line:?}"));
        block.with(key, value.trim_start())
    })
}
