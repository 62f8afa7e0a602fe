//! The names that a file uses, and the files in which they are defined. Called by `circles`.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::super::tokens::is_punct;
use super::super::tree::File;

/// The most re-exports to follow for one name.
const DEPTH: usize = 8;

/// A file as a module.
#[derive(Debug)]
pub(super) struct Module {
    /// The file's path from the root of the workspace.
    pub(super) file: String,
    /// Its module names from the root of the crate, without the root itself.
    pub(super) path: Vec<String>,
    /// Every path that it uses, as written.
    pub(super) uses: Vec<Vec<String>>,
    /// Names that a `use` introduces, and their paths.
    names: BTreeMap<String, Vec<String>>,
    /// The nesting depth of the modules within the file that are being read.
    depth: usize,
}

impl Module {
    /// Reads a file of the crate with this source folder; `None` for other files.
    pub(super) fn read(root: &str, file: &File) -> Option<Self> {
        let inside = file.path.strip_prefix(root)?.strip_prefix('/')?;
        let inside = inside.strip_suffix(".rs")?;
        // A separate program, with other module paths.
        if inside.starts_with("bin/") {
            return None;
        }
        let mut path: Vec<String> = inside.split('/').map(str::to_owned).collect();
        if path == ["lib"] || path == ["main"] {
            path.clear();
        }
        let mut module = Self {
            file: file.path.clone(),
            path,
            uses: Vec::new(),
            names: BTreeMap::new(),
            depth: 0,
        };
        module.stream(file.text.parse().ok()?);
        Some(module)
    }

    fn stream(&mut self, stream: TokenStream) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            let end = rest.iter().position(|token| is_punct(token, ';'));
            if is_for_tests(rest) {
                at += item_length(rest);
            } else if is_word(&rest[0], "use")
                && !rest.get(1).is_some_and(|token| is_punct(token, '<'))
            {
                let end = end.unwrap_or(rest.len());
                self.tree(&rest[1..end], &[]);
                at += end;
            } else if is_word(&rest[0], "pub") {
                // `in` only limits the visibility of an item, so the path is not a use of that
                // module.
                at += 1 + usize::from(rest.get(1).is_some_and(is_reach));
            } else if let Some(body) = module_body(rest) {
                self.depth += 1;
                self.stream(body);
                self.depth -= 1;
                at += 3;
            } else if let TokenTree::Group(group) = &rest[0] {
                self.stream(group.stream());
                at += 1;
            } else {
                at += self.path_in_code(rest);
            }
        }
    }

    /// One branch of a `use`, after `prefix`.
    fn tree(&mut self, tokens: &[TokenTree], prefix: &[String]) {
        let mut path = prefix.to_vec();
        let mut tokens = tokens.iter();
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Ident(word) if word == "as" => {
                    if let Some(TokenTree::Ident(name)) = tokens.next() {
                        self.add(path, name.to_string());
                    }
                    return;
                }
                TokenTree::Ident(word) => path.push(word.to_string()),
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                    for branch in inner.split(|token| is_punct(token, ',')) {
                        self.tree(branch, &path);
                    }
                    return;
                }
                TokenTree::Punct(punct) if punct.as_char() == '*' => {
                    self.uses.push(self.outside(path));
                    return;
                }
                _ => {}
            }
        }
        // `a::{self}` brings in `a`.
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(name) = path.last().cloned() {
            self.add(path, name);
        }
    }

    fn add(&mut self, path: Vec<String>, name: String) {
        let path = self.outside(path);
        self.uses.push(path.clone());
        if self.depth == 0 {
            self.names.insert(name, path);
        }
    }

    /// Converts a path in a module within the file to the form that the file itself would write.
    fn outside(&self, mut path: Vec<String>) -> Vec<String> {
        let leading = path.iter().take_while(|word| *word == "super").count();
        path.drain(..leading.min(self.depth));
        path
    }

    /// Notes a path outside a `use` if it begins with `crate`, `self` or `super`. Returns the
    /// number of tokens that it has read.
    fn path_in_code(&mut self, tokens: &[TokenTree]) -> usize {
        let TokenTree::Ident(first) = &tokens[0] else {
            return 1;
        };
        let mut path = vec![first.to_string()];
        let mut at = 1;
        while let [colon, second, TokenTree::Ident(word), ..] = &tokens[at..]
            && is_punct(colon, ':')
            && is_punct(second, ':')
        {
            path.push(word.to_string());
            at += 3;
        }
        if path.len() > 1 && ["crate", "self", "super"].contains(&path[0].as_str()) {
            self.uses.push(self.outside(path));
        }
        at
    }
}

/// Whether these tokens are `#[cfg(test)]` or similar.
fn is_for_tests(tokens: &[TokenTree]) -> bool {
    let [hash, TokenTree::Group(group), ..] = tokens else {
        return false;
    };
    let mut inner = group.stream().into_iter();
    let is_cfg = inner.next().is_some_and(|token| is_word(&token, "cfg"));
    let arguments = inner.next().map(|token| token.to_string());
    is_punct(hash, '#') && is_cfg && arguments.is_some_and(|text| text == "(test)")
}

/// The tokens of `mod name { … }`.
fn module_body(tokens: &[TokenTree]) -> Option<TokenStream> {
    let [word, TokenTree::Ident(_), body, ..] = tokens else {
        return None;
    };
    let body = super::super::tokens::braces(body)?;
    is_word(word, "mod").then(|| body.stream())
}

/// Tokens up to the end of the item after an attribute.
fn item_length(tokens: &[TokenTree]) -> usize {
    let is_end =
        |token: &TokenTree| is_punct(token, ';') || super::super::tokens::braces(token).is_some();
    tokens
        .iter()
        .position(is_end)
        .map_or(tokens.len(), |end| end + 1)
}

/// Whether this is `(crate)`, `(in crate::one)` or similar, which limits a `pub`; a tuple is not.
fn is_reach(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else {
        return false;
    };
    let inner: Vec<TokenTree> = group.stream().into_iter().collect();
    let begins_with_in = inner.first().is_some_and(|first| is_word(first, "in"));
    group.delimiter() == Delimiter::Parenthesis && (begins_with_in || inner.len() == 1)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

/// The file that defines the item at `path`, as seen from a module, after following re-exports;
/// `None` if another crate defines it.
pub(super) fn resolve<'a>(
    modules: &BTreeMap<&[String], &'a Module>,
    from: &'a Module,
    path: &[String],
    depth: usize,
) -> Option<&'a str> {
    let (mut at, mut rest): (&[String], &[String]) = (&from.path, path);
    let first = rest.first()?;
    match first.as_str() {
        "crate" => (at, rest) = (&[], &rest[1..]),
        "self" => rest = &rest[1..],
        "super" => {
            while rest.first().is_some_and(|word| word == "super") {
                at = &at[..at.len().checked_sub(1)?];
                rest = &rest[1..];
            }
        }
        _ => {
            let child = [at, &path[..1]].concat();
            if !modules.contains_key(&child[..]) {
                return None;
            }
        }
    }
    let mut at = at.to_vec();
    while let Some((next, after)) = rest.split_first() {
        at.push(next.clone());
        if !modules.contains_key(&at[..]) {
            at.pop();
            break;
        }
        rest = after;
    }
    let module = modules.get(&at[..])?;
    let Some(name) = rest.first() else {
        return Some(&module.file);
    };
    match module.names.get(name) {
        Some(path) if depth < DEPTH && !std::ptr::eq(*module, from) => {
            resolve(modules, module, path, depth + 1)
        }
        _ => Some(&module.file),
    }
}
