//! Declarations in a lane. If a variable gets an array, its declaration is split: the array is
//! declared before the lanes, and an assignment replaces the declaration. Types that a lane
//! declares also move before the lanes.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use tree_sitter::Node;

use crate::edit::Piece;
use crate::emit::Emitter;
use crate::lanes::{Plan, is_unsized};
use crate::names::{Declarator, children};

pub(crate) struct Declarations<'e, 'a, 't> {
    pub(crate) emitter: &'e mut Emitter<'a>,
    pub(crate) plan: &'e Plan<'t>,
    pub(crate) lane: usize,
    pub(crate) arrays: &'e BTreeSet<usize>,
    pub(crate) called: &'e HashMap<usize, String>,
    /// Text that goes before the lanes, with its place in the source.
    pub(crate) hoisted: Vec<(usize, Vec<Piece>)>,
}

impl<'t> Declarations<'_, '_, 't> {
    /// Edits the declarations; returns the text that goes before the lanes.
    pub(crate) fn declare(&mut self) -> Vec<Piece> {
        let mut pieces = self.outer();
        let body = self.plan.names.foreach[self.lane].body.byte_range();
        self.types(&body);
        let mut done = BTreeSet::new();
        for declared in &self.plan.names.declarators {
            let declaration = declared.declaration;
            let is_ours = body.contains(&declaration.start_byte());
            if is_ours && done.insert(declaration.start_byte()) {
                self.declaration(declaration);
            }
        }
        let mut hoisted = std::mem::take(&mut self.hoisted);
        hoisted.sort_by_key(|(at, _)| *at);
        let from = self.plan.function.start_byte();
        for (at, declaration) in hoisted {
            let around = self.emitter.source.conditions(from, at);
            for line in around.iter().flatten() {
                pieces.push(format!("{line}\n").into());
            }
            pieces.extend(declaration);
            pieces.push("\n".into());
            for _ in around {
                pieces.push("#endif\n".into());
            }
        }
        pieces
    }

    /// Arrays of the index, and of the function's locals that each lane uses as its own.
    fn outer(&self) -> Vec<Piece> {
        let lanes = self.emitter.lanes;
        let mut pieces = Vec::new();
        let foreach = &self.plan.names.foreach[self.lane];
        for variable in self.arrays {
            let known = &self.plan.names.variables[*variable];
            let new = &self.called[variable];
            let (name, is_index) = (&known.name, *variable == foreach.variable);
            if is_index {
                let array = format!("__typeof__(gopt_n) {new}[{lanes}];\n");
                pieces.push(Piece::New(array));
            } else if !foreach.body.byte_range().contains(&known.declared.start) {
                let array = format!("(void){name}; __typeof__({name}) {new}[{lanes}];\n");
                pieces.push(Piece::New(array));
            }
        }
        if foreach.same_outside.is_some() {
            let name = &self.plan.names.variables[foreach.variable].name;
            pieces.push(Piece::New(format!("(void){name};\n")));
        }
        pieces
    }

    fn types(&mut self, body: &Range<usize>) {
        let mut end = 0;
        for node in &self.plan.names.types {
            let range = node.byte_range();
            // A type inside another type moves with the outer one.
            if !body.contains(&range.start) || range.start < end {
                continue;
            }
            end = range.end;
            if node.kind() == "type_definition" {
                self.hoisted
                    .push((range.start, vec![Piece::Moved(range.clone())]));
                self.emitter.edits.replace(range, vec![";".into()]);
            } else {
                self.specifier(*node);
            }
        }
    }

    /// A struct, union or enum with a body: the body moves, and the tag stays.
    fn specifier(&mut self, node: Node<'t>) {
        let Some(inner) = node.child_by_field_name("body") else {
            return;
        };
        let body = inner.byte_range();
        let keyword = node.kind().trim_end_matches("_specifier");
        let mut old_tag = String::new();
        let tag = match node.child_by_field_name("name") {
            Some(name) => self.emitter.source.text[name.byte_range()].to_owned(),
            None => {
                old_tag = self.emitter.new_type();
                old_tag.clone()
            }
        };
        let moved = vec![
            format!("{keyword} {tag} ").into(),
            Piece::Moved(body.clone()),
            ";".into(),
        ];
        self.hoisted.push((node.start_byte(), moved));
        let is_alone = node.parent().is_some_and(|parent| {
            parent.kind() == "declaration" && parent.child_by_field_name("declarator").is_none()
        });
        match (is_alone, node.parent()) {
            (true, Some(parent)) => {
                self.emitter
                    .edits
                    .replace(parent.byte_range(), vec![";".into()]);
            }
            _ => self.emitter.edits.replace(body, vec![old_tag.into()]),
        }
    }

    fn declaration(&mut self, node: Node<'t>) {
        let all = self.plan.names.declarators.iter();
        let all: Vec<_> = all.filter(|it| it.declaration == node).collect();
        if !all.iter().any(|it| self.arrays.contains(&it.variable)) {
            return;
        }
        let is_header = node
            .parent()
            .is_some_and(|parent| parent.kind() == "for_statement");
        let mut pieces: Vec<Piece> = Vec::new();
        for declared in all {
            if !self.arrays.contains(&declared.variable) {
                pieces.extend(stays(declared));
                continue;
            }
            self.hoist(declared);
            let Some(value) = declared.value else {
                continue;
            };
            if !pieces.is_empty() {
                pieces.push(if is_header { ", " } else { " " }.into());
            }
            pieces.extend(self.assign(declared, value));
            if !is_header {
                pieces.push(";".into());
            }
        }
        if is_header || pieces.is_empty() {
            pieces.push(";".into());
        }
        self.emitter.edits.replace(node.byte_range(), pieces);
    }

    fn hoist(&mut self, declared: &Declarator<'t>) {
        let new = &self.called[&declared.variable];
        let lanes = self.emitter.lanes;
        let element = format!("{new}[{lanes}]");
        let mut pieces: Vec<Piece> = Vec::new();
        match declared.value.filter(|_| is_unsized(declared)) {
            Some(value) => {
                pieces.push("__typeof__((".into());
                pieces.extend(abstract_type(declared));
                pieces.push(")".into());
                pieces.extend(braced(value));
                pieces.push(format!(") {element}").into());
            }
            None => {
                let owner = pointer_of(declared);
                let keep_const = owner.is_some();
                pieces.extend(specifiers(declared.declaration, keep_const));
                let begin = declared.declarator.start_byte();
                let mut at = begin;
                let constants = owner.map(children).unwrap_or_default();
                let is_const = |node: &&Node<'_>| {
                    node.kind() == "type_qualifier"
                        && &self.emitter.source.text[node.byte_range()] == "const"
                };
                for constant in constants.iter().filter(is_const) {
                    pieces.push((at..constant.start_byte()).into());
                    at = constant.end_byte();
                }
                pieces.push((at..declared.identifier.start_byte()).into());
                pieces.push(element.into());
                let rest = declared.identifier.end_byte()..declared.declarator.end_byte();
                pieces.push(rest.into());
            }
        }
        pieces.push(" __attribute__((unused));".into());
        let at = declared.identifier.start_byte();
        self.hoisted.push((at, pieces));
    }

    fn assign(&self, declared: &Declarator<'t>, value: Node<'t>) -> Vec<Piece> {
        let new = &self.called[&declared.variable];
        let target = format!("{new}[gopt_lane]");
        let is_array = self.plan.names.variables[declared.variable].dimensions > 0;
        if !is_array && value.kind() != "initializer_list" {
            return vec![format!("{target} = ").into(), value.byte_range().into()];
        }
        let mut literal: Vec<Piece> = vec!["(".into()];
        literal.extend(abstract_type(declared));
        literal.push(")".into());
        literal.extend(braced(value));
        if !is_array {
            literal.insert(0, format!("{target} = ").into());
            return literal;
        }
        literal.insert(0, format!("__builtin_memcpy({target}, ").into());
        literal.push(format!(", sizeof {target})").into());
        literal
    }
}

/// The declaration of a variable that stays in its place. It declares this variable only.
fn stays(declared: &Declarator<'_>) -> Vec<Piece> {
    let begin = declared.declaration.start_byte();
    let first = declared.declaration.child_by_field_name("declarator");
    let first = first.map_or(begin, |first| first.start_byte());
    let end = match declared.value {
        Some(value) => value.end_byte(),
        None => declared.declarator.end_byte(),
    };
    vec![
        (begin..first).into(),
        (declared.declarator.start_byte()..end).into(),
        "; ".into(),
    ]
}

/// The specifiers of a declaration, without those that an array of lanes cannot have.
fn specifiers(declaration: Node<'_>, keep_const: bool) -> Vec<Piece> {
    let first = declaration.child_by_field_name("declarator");
    let first = first.map_or(declaration.end_byte(), |first| first.start_byte());
    let mut pieces: Vec<Piece> = Vec::new();
    for specifier in children(declaration) {
        let is_const = specifier.kind() == "type_qualifier"
            && specifier
                .child(0)
                .is_some_and(|word| word.kind() == "const");
        let is_kept = specifier.kind() != "storage_class_specifier" && (keep_const || !is_const);
        if specifier.end_byte() <= first && is_kept {
            pieces.push(specifier.byte_range().into());
            pieces.push(" ".into());
        }
    }
    pieces
}

/// The pointer that a `const` in front of the name would belong to.
fn pointer_of<'t>(declared: &Declarator<'t>) -> Option<Node<'t>> {
    let mut node = declared.identifier;
    while node != declared.declarator {
        node = node.parent()?;
        if node.kind() == "pointer_declarator" {
            return Some(node);
        }
    }
    None
}

/// The type of a variable, as a cast writes it.
fn abstract_type(declared: &Declarator<'_>) -> Vec<Piece> {
    let mut pieces = specifiers(declared.declaration, pointer_of(declared).is_some());
    let (declarator, identifier) = (declared.declarator, declared.identifier);
    pieces.push((declarator.start_byte()..identifier.start_byte()).into());
    pieces.push((identifier.end_byte()..declarator.end_byte()).into());
    pieces
}

fn braced(value: Node<'_>) -> Vec<Piece> {
    match value.kind() {
        "initializer_list" => vec![value.byte_range().into()],
        _ => vec!["{".into(), value.byte_range().into(), "}".into()],
    }
}
