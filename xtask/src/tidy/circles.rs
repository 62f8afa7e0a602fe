//! Circles between the files of a crate (convention 18). A folder (with the file of its name) and
//! another folder or file of the crate's root must not need each other; inside a folder, at most
//! three files may form a circle. A file needs another one if it names an item of that file: in a
//! `use`, or by a path, as in the types of signatures.
//!
//! The existing circles are listed in `xtask/circles.txt`. The list may only shrink: tidy reports a
//! file that enters a circle, and a line whose circle no longer exists.

mod uses;

use std::collections::{BTreeMap, BTreeSet};

use super::Finding;
use super::tokens::is_test;
use super::tree::{File, Tree};
use uses::Module;

/// The list of known circles.
const KNOWN: &str = "xtask/circles.txt";

/// The most files of a folder in one circle.
const FILES: usize = 3;

/// The files that each file needs.
type Needs = BTreeMap<String, BTreeSet<String>>;

/// A place in a circle that is too large, and the circle.
type Places = BTreeMap<String, Vec<String>>;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let known: BTreeSet<&str> = tree
        .get(KNOWN)
        .map_or("", |file| &file.text)
        .lines()
        .collect();
    let places = places(tree);
    let mut findings = Vec::new();
    for (place, way) in places
        .iter()
        .filter(|(place, _)| !known.contains(place.as_str()))
    {
        let (kind, path) = place.split_once(' ').unwrap_or(("", place));
        let what = format!(
            "is in a new circle {kind} folders: {}; reverse one of these uses",
            way.join(" → ")
        );
        findings.push(Finding::new(path.trim_end_matches('/'), 0, what));
    }
    for (index, line) in known.iter().enumerate() {
        if !places.contains_key(*line) {
            let what = format!(
                "`{line}` is in no circle any more: remove the line, or rewrite all of them with \
                 `cargo xtask tidy --circles`"
            );
            findings.push(Finding::new(KNOWN, index + 1, what));
        }
    }
    findings
}

/// The number of places in the list.
pub(super) fn count(tree: &Tree) -> usize {
    tree.get(KNOWN).map_or(0, |file| file.text.lines().count())
}

/// The text that the list should have now.
pub(super) fn list(tree: &Tree) -> String {
    places(tree).into_keys().map(|place| place + "\n").collect()
}

/// Every place in a circle that is too large, by the place's name in the list.
fn places(tree: &Tree) -> Places {
    let mut places = Places::new();
    for root in roots(tree) {
        let needs = needs(tree, &root);
        places.extend(between_folders(&root, &needs));
        places.extend(within_folders(&root, &needs));
    }
    places
}

/// The source folders of all crates.
fn roots(tree: &Tree) -> BTreeSet<String> {
    let is_root =
        |file: &&File| file.path.ends_with("src/lib.rs") || file.path.ends_with("src/main.rs");
    let folder = |file: &File| {
        file.path
            .rsplit_once('/')
            .map(|(folder, _)| folder.to_owned())
    };
    tree.rust().filter(is_root).filter_map(folder).collect()
}

/// The files that each file of a crate needs. Tests do not count.
fn needs(tree: &Tree, root: &str) -> Needs {
    let modules: Vec<Module> = tree
        .rust()
        .filter(|file| !is_test(&file.path))
        .filter_map(|file| Module::read(root, file))
        .collect();
    let by_path: BTreeMap<&[String], &Module> = modules
        .iter()
        .map(|module| (&module.path[..], module))
        .collect();
    let needed = |module: &Module| {
        let paths = module.uses.iter();
        let files = paths.filter_map(|path| uses::resolve(&by_path, module, path, 0));
        files
            .filter(|file| *file != module.file)
            .map(str::to_owned)
            .collect()
    };
    let of = |module: &Module| (module.file.clone(), needed(module));
    modules.iter().map(of).collect()
}

/// The folder of a file, as a path with a slash at its end; a file in the root itself is its own
/// folder.
fn folder(root: &str, file: &str, needs: &Needs) -> String {
    let inside = &file[root.len() + 1..];
    if let Some((first, _)) = inside.split_once('/') {
        return format!("{root}/{first}/");
    }
    let own = format!("{}/", file.trim_end_matches(".rs"));
    match needs.keys().any(|other| other.starts_with(&own)) {
        true => own,
        false => file.to_owned(),
    }
}

fn between_folders(root: &str, needs: &Needs) -> Places {
    let mut folders = Needs::new();
    for (file, needed) in needs {
        let from = folder(root, file, needs);
        let to = needed.iter().map(|other| folder(root, other, needs));
        let to: Vec<String> = to.filter(|to| *to != from).collect();
        folders.entry(from).or_default().extend(to);
    }
    let has_folder = |circle: &BTreeSet<String>| circle.iter().any(|it| it.ends_with('/'));
    let circles = circles(&folders)
        .into_iter()
        .filter(|circle| circle.len() > 1);
    named("between", circles.filter(has_folder), &folders)
}

fn within_folders(root: &str, needs: &Needs) -> Places {
    // Here all files of the root are in one folder.
    let home = |file: &str| {
        let folder = folder(root, file, needs);
        if folder.ends_with('/') {
            folder
        } else {
            root.to_owned()
        }
    };
    let inside = |(file, needed): (&String, &BTreeSet<String>)| {
        let near = needed.iter().filter(|other| home(other) == home(file));
        (file.clone(), near.cloned().collect())
    };
    let near: Needs = needs.iter().map(inside).collect();
    let circles = circles(&near)
        .into_iter()
        .filter(|circle| circle.len() > FILES);
    named("within", circles, &near)
}

/// The places of these circles, each with a shortest path back to itself.
fn named(kind: &str, circles: impl Iterator<Item = BTreeSet<String>>, needs: &Needs) -> Places {
    let mut places = Places::new();
    for member in circles.flatten() {
        let way = way_back(&member, needs);
        places.insert(format!("{kind} {member}"), way);
    }
    places
}

/// Everything that a node needs, directly or not, with the node through which it was found.
fn reached(from: &str, needs: &Needs) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut queue = std::collections::VecDeque::from([from.to_owned()]);
    while let Some(node) = queue.pop_front() {
        for next in needs.get(&node).into_iter().flatten() {
            if !found.contains_key(next) {
                found.insert(next.clone(), node.clone());
                queue.push_back(next.clone());
            }
        }
    }
    found
}

/// The sets of nodes that all need each other.
fn circles(needs: &Needs) -> BTreeSet<BTreeSet<String>> {
    let reach: BTreeMap<&String, BTreeMap<String, String>> = needs
        .keys()
        .map(|node| (node, reached(node, needs)))
        .collect();
    let circle = |node: &String| -> BTreeSet<String> {
        let back = |other: &&String| {
            reach
                .get(other)
                .is_some_and(|reach| reach.contains_key(node))
        };
        reach[node].keys().filter(back).cloned().collect()
    };
    let circles = needs.keys().map(circle);
    circles.filter(|circle| !circle.is_empty()).collect()
}

/// A shortest path from a node back to itself.
fn way_back(node: &str, needs: &Needs) -> Vec<String> {
    let from = reached(node, needs);
    let mut way = vec![node.to_owned()];
    let mut at = node;
    while let Some(before) = from.get(at) {
        way.push(before.clone());
        at = before;
        if at == node {
            break;
        }
    }
    way.reverse();
    way
}

#[cfg(test)]
mod tests;
