//! The core of an endpoint, which passes each event to its parts (convention 20). Logic belongs in
//! the parts, so the number of methods of `Core`, and of the files that contain them, is bounded. A
//! reader of these methods sees all paths that an event can take. A function elsewhere that borrows
//! a `Core` to change it counts as one of the methods.
//!
//! A view lends some parts of a `Core` for events that concern all of these parts. It must not
//! become a second `Core`, so the methods of each view and the functions that borrow it are bounded
//! too. The engine of an endpoint, which has the core, the handlers and the transport, is bounded
//! in the same way.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::Finding;
use super::tokens::{braces, is_punct, is_test};
use super::tree::{File, Tree};

/// The source folder of the crate; `PLACE`: the path of its `Core`, a file and the folder of the
/// same name.
const CRATE: &str = "crates/core/src/";
const PLACE: &str = "crates/core/src/protocol";

/// The most files with methods of `Core`.
const FILES: usize = 4;

/// The most methods of `Core`, including those in builds with planted bugs, and functions with an
/// argument `&mut Core`.
const METHODS: usize = 40;

/// The views, each with the most methods and functions with an argument `&mut` of it.
const VIEWS: [(&str, usize); 4] = [
    ("Server", 22),
    ("Inquirer", 4),
    ("Lent", 34),
    ("Engine", 76),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let is_source = |file: &&File| file.path.starts_with(CRATE) && !is_test(&file.path);
    let files: Vec<&File> = tree.rust().filter(is_source).collect();
    let mut findings = check_views(&files);
    let borrowers = borrowers(&files, "Core");
    let counts: Vec<(&File, usize)> = files
        .into_iter()
        .filter_map(|file| Some((file, methods(file, "Core")?)))
        .collect();
    let is_outside = |file: &File| {
        let rest = file.path.strip_prefix(PLACE);
        !rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
    };
    for (file, _) in counts.iter().filter(|(file, _)| is_outside(file)) {
        let what = format!("has methods of `Core`; they belong in {PLACE}");
        findings.push(Finding::new(&file.path, 0, what));
    }
    if counts.len() > FILES {
        let what = format!(
            "{} files have methods of `Core`; at most {FILES} may",
            counts.len()
        );
        findings.push(Finding::new(PLACE, 0, what));
    }
    let methods: usize = counts.iter().map(|(_, count)| count).sum();
    if methods + borrowers > METHODS {
        let what = format!(
            "`Core` has {methods} methods, and {borrowers} functions take `&mut Core`; together at \
             most {METHODS} may exist: move logic down"
        );
        findings.push(Finding::new(PLACE, 0, what));
    }
    findings
}

fn check_views(files: &[&File]) -> Vec<Finding> {
    let too_many = |(view, most): (&str, usize)| {
        let methods = files.iter().filter_map(|file| methods(file, view));
        let (methods, borrowers) = (methods.sum::<usize>(), borrowers(files, view));
        let what = format!(
            "the view `{view}` has {methods} methods, and {borrowers} functions take `&mut \
             {view}`; together at most {most} may exist: move logic down"
        );
        (methods + borrowers > most).then(|| Finding::new(CRATE, 0, what))
    };
    VIEWS.into_iter().filter_map(too_many).collect()
}

/// The number of methods of this type in a file; `None` if the file has no `impl` of it.
fn methods(file: &File, name: &str) -> Option<usize> {
    let tokens: Vec<TokenTree> = file.text.parse::<TokenStream>().ok()?.into_iter().collect();
    let counts = (0..tokens.len()).filter_map(|at| {
        let head = is_word(&tokens[at], "impl").then(|| &tokens[at..])?;
        let body = head.iter().position(|token| braces(token).is_some())?;
        let has = |word: &str| head[..body].iter().any(|token| is_word(token, word));
        // The methods of a trait are the trait's.
        (has(name) && !has("for")).then(|| braces(&head[body]))?
    });
    let is_function = |token: &TokenTree| is_word(token, "fn");
    counts
        .map(|body| body.stream().into_iter().filter(is_function).count())
        .reduce(|sum, count| sum + count)
}

/// The number of functions that take a `&mut` of this type.
fn borrowers(files: &[&File], name: &str) -> usize {
    let of = |file: &&File| file.text.parse().map_or(0, |text| borrowers_in(text, name));
    files.iter().map(of).sum()
}

fn borrowers_in(stream: TokenStream, name: &str) -> usize {
    let tokens: Vec<TokenTree> = stream.into_iter().collect();
    let is_borrower = |at: &usize| {
        let is_arguments = |token: &&TokenTree| {
            matches!(token, TokenTree::Group(group)
                if group.delimiter() == Delimiter::Parenthesis)
        };
        let head = &tokens[*at..];
        is_word(&head[0], "fn")
            && head
                .iter()
                .find(is_arguments)
                .is_some_and(|arguments| lends(std::slice::from_ref(arguments), name))
    };
    let here = (0..tokens.len()).filter(is_borrower).count();
    let inside = tokens.iter().map(|token| match token {
        TokenTree::Group(group) => borrowers_in(group.stream(), name),
        _ => 0,
    });
    here + inside.sum::<usize>()
}

/// Whether these tokens contain `&mut` and then this type, with or without a lifetime and a path.
fn lends(tokens: &[TokenTree], wanted: &str) -> bool {
    let is_here = (0..tokens.len()).any(|at| {
        let mut rest = tokens[at..].iter().peekable();
        if !rest.next().is_some_and(|token| is_punct(token, '&')) {
            return false;
        }
        if rest.next_if(|token| is_punct(token, '\'')).is_some() {
            rest.next();
        }
        let is_mutable = rest.next().is_some_and(|token| is_word(token, "mut"));
        let is_path =
            |token: &&TokenTree| matches!(token, TokenTree::Ident(_)) || is_punct(token, ':');
        let name = rest.take_while(is_path).last();
        is_mutable && name.is_some_and(|name| is_word(name, wanted))
    });
    let is_inside = |token: &TokenTree| match token {
        TokenTree::Group(group) => lends(&group.stream().into_iter().collect::<Vec<_>>(), wanted),
        _ => false,
    };
    is_here || tokens.iter().any(is_inside)
}

fn is_word(token: &TokenTree, word: &str) -> bool {
    matches!(token, TokenTree::Ident(found) if found == word)
}

#[cfg(test)]
mod tests;
