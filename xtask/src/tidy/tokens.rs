//! Checks of the tokens of a Rust file: lengths of functions, macros that mark unfinished work,
//! `unwrap()` outside tests, and tests that are not in their own file (conventions 1, 2, 10). They
//! read tokens instead of syntax trees, because bodies of macros count too.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};

use super::Finding;
use super::tree::{File, Tree};

/// A function must be shorter than this many lines, from `fn` to its closing brace.
const FUNCTION_LINES: usize = 70;

/// Macros that mean "not finished".
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(check_file).collect()
}

/// True for files that only tests compile.
pub(super) fn is_test(path: &str) -> bool {
    let stem = path.trim_end_matches(".rs");
    stem.split('/')
        .any(|name| name == "tests" || name == "benches")
        || stem.ends_with("_tests")
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut walk = Walk {
        file,
        is_test: is_test(&file.path),
        findings: Vec::new(),
    };
    match file.text.parse::<TokenStream>() {
        Ok(stream) => walk.stream(stream),
        Err(error) => {
            let line = error.span().start().line;
            walk.found(line, format!("not Rust: {error}"));
        }
    }
    walk.findings
}

struct Walk<'a> {
    file: &'a File,
    is_test: bool,
    findings: Vec<Finding>,
}

impl Walk<'_> {
    fn found(&mut self, line: usize, what: impl Into<String>) {
        self.findings
            .push(Finding::new(&self.file.path, line, what));
    }

    fn stream(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        for at in 0..tokens.len() {
            self.function(&tokens[at..]);
            self.unfinished(&tokens[at..]);
            if !self.is_test {
                self.unwrap(&tokens[at..]);
                self.inline_tests(&tokens[at..]);
            }
            if let TokenTree::Group(group) = &tokens[at] {
                self.stream(group.stream());
            }
        }
    }

    /// `fn name …` up to the first braces or semicolon at the same level.
    fn function(&mut self, tokens: &[TokenTree]) {
        let [TokenTree::Ident(keyword), TokenTree::Ident(name), rest @ ..] = tokens else {
            return;
        };
        if keyword != "fn" {
            return;
        }
        let Some(body) = rest
            .iter()
            .take_while(|token| !is_punct(token, ';'))
            .find_map(braces)
        else {
            return;
        };
        let first = keyword.span().start().line;
        let lines = body.span_close().end().line + 1 - first;
        if lines >= FUNCTION_LINES {
            let what =
                format!("`{name}` has {lines} lines; a function has fewer than {FUNCTION_LINES}");
            self.found(first, what);
        }
    }

    fn unfinished(&mut self, tokens: &[TokenTree]) {
        let [TokenTree::Ident(name), bang, ..] = tokens else {
            return;
        };
        if is_punct(bang, '!') && UNFINISHED.iter().any(|word| name == word) {
            self.found(
                name.span().start().line,
                format!("`{name}!` marks unfinished work"),
            );
        }
    }

    fn unwrap(&mut self, tokens: &[TokenTree]) {
        let [dot, TokenTree::Ident(name), TokenTree::Group(arguments), ..] = tokens else {
            return;
        };
        let is_call = arguments.delimiter() == Delimiter::Parenthesis;
        if is_punct(dot, '.') && name == "unwrap" && is_call && arguments.stream().is_empty() {
            let what = "`unwrap()` outside tests; `expect` states the invariant";
            self.found(name.span().start().line, what);
        }
    }

    fn inline_tests(&mut self, tokens: &[TokenTree]) {
        let [TokenTree::Ident(keyword), TokenTree::Ident(name), body, ..] = tokens else {
            return;
        };
        let is_tests = name
            .to_string()
            .split('_')
            .any(|word| word == "tests" || word == "test");
        if keyword == "mod" && is_tests && braces(body).is_some() {
            let what = format!("the tests `{name}` must be in a file of their own");
            self.found(name.span().start().line, what);
        }
    }
}

pub(super) fn is_punct(token: &TokenTree, punct: char) -> bool {
    matches!(token, TokenTree::Punct(found) if found.as_char() == punct)
}

pub(super) fn braces(token: &TokenTree) -> Option<&Group> {
    match token {
        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(group),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
