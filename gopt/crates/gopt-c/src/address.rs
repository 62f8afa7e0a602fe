//! Addresses of the locals of lanes. A local whose address is taken can be reached without its
//! name, so it gets an array if its scope contains any switch. Code that lets such an address leave
//! the lane is refused: in the original the address is valid until the item ends, but in the output
//! other items run before that.
//!
//! The result of a call does not count as an address, even if an argument was one: most look-ups
//! hash a local key and store the result.

use std::collections::HashSet;

use tree_sitter::Node;

use crate::diagnostic::Diagnostic;
use crate::flow::root;
use crate::names::{Names, Storage, children};
use crate::source::Source;

/// Returns the variables of lanes whose address is taken, or the refusals.
pub(crate) fn check(
    source: &Source<'_>,
    names: &Names<'_>,
) -> Result<HashSet<usize>, Vec<Diagnostic>> {
    let mut pass = Pass {
        source,
        names,
        taken: HashSet::new(),
        carriers: HashSet::new(),
        escapes: Vec::new(),
    };
    // A pointer may be copied before the statement that fills it, so this repeats until it finds
    // nothing new.
    loop {
        let known = pass.carriers.len();
        pass.escapes.clear();
        for foreach in &names.foreach {
            pass.walk(foreach.body);
        }
        if pass.carriers.len() == known {
            break;
        }
    }
    match pass.escapes.is_empty() {
        true => Ok(pass.taken),
        false => Err(pass.escapes),
    }
}

struct Pass<'a, 't> {
    source: &'a Source<'a>,
    names: &'a Names<'t>,
    taken: HashSet<usize>,
    /// Locals of lanes that may hold the address of a local. Each comes with the last field in
    /// which the address was stored.
    carriers: HashSet<(usize, Option<String>)>,
    escapes: Vec<Diagnostic>,
}

impl Pass<'_, '_> {
    fn text(&self, node: Node<'_>) -> &str {
        &self.source.text[node.byte_range()]
    }

    fn is_local(&self, variable: usize) -> bool {
        let place = self.names.variables[variable].place;
        matches!(place, Storage::Lane(_) | Storage::Index(_))
    }

    fn walk(&mut self, node: Node<'_>) {
        match node.kind() {
            "sizeof_expression" => return,
            "assignment_expression" => self.assignment(node),
            "init_declarator" => self.initialiser(node),
            "return_statement" => self.returned(node),
            "pointer_expression" | "identifier" => drop(self.carries(node)),
            "call_expression" => self.macro_arguments(node),
            _ => {}
        }
        for child in children(node) {
            self.walk(child);
        }
    }

    fn returned(&mut self, node: Node<'_>) {
        if node.named_child(0).is_some_and(|value| self.carries(value)) {
            self.escape(node, "is returned");
        }
    }

    fn escape(&mut self, node: Node<'_>, how: &str) {
        let reason = format!("the address of a local of the lane {how}, and outlives its item");
        let at = node.start_byte();
        self.escapes
            .push(Diagnostic::refused(self.source.text, at, reason));
    }

    /// A macro may take the address of its argument.
    fn macro_arguments(&mut self, node: Node<'_>) {
        let function = node.child_by_field_name("function");
        let name = function.map_or("", |function| self.text(function));
        let takes = match self.source.macros.get(name) {
            Some(known) => known.takes_address,
            None => !name.chars().any(|c| c.is_ascii_lowercase()),
        };
        let arguments = node.child_by_field_name("arguments").filter(|_| takes);
        for argument in arguments.map(children).unwrap_or_default() {
            if let Some((variable, _)) = root(self.names, argument) {
                self.taken.insert(variable);
            }
        }
    }

    fn initialiser(&mut self, node: Node<'_>) {
        let (Some(declarator), Some(value)) = (
            node.child_by_field_name("declarator"),
            node.child_by_field_name("value"),
        ) else {
            return;
        };
        let identifier = crate::names::declared_identifier(declarator);
        let variable = identifier.and_then(|identifier| self.names.of(identifier));
        if let Some(variable) = variable.filter(|_| self.carries(value)) {
            match self.is_local(variable) {
                true => drop(self.carriers.insert((variable, None))),
                false => self.escape(value, "is stored where all lanes see it"),
            }
        }
    }

    fn assignment(&mut self, node: Node<'_>) {
        let (Some(left), Some(right)) = (
            node.child_by_field_name("left"),
            node.child_by_field_name("right"),
        ) else {
            return;
        };
        if !self.carries(right) {
            return;
        }
        match root(self.names, left) {
            Some((variable, _)) if self.is_local(variable) => {
                let field = self.last_field(left);
                self.carriers.insert((variable, field));
            }
            _ => self.escape(right, "is stored where all lanes see it"),
        }
    }

    fn last_field(&self, node: Node<'_>) -> Option<String> {
        match node.kind() {
            "field_expression" => node
                .child_by_field_name("field")
                .map(|field| self.text(field).to_owned()),
            "subscript_expression" => self.last_field(node.child_by_field_name("argument")?),
            "parenthesized_expression" => self.last_field(node.named_child(0)?),
            _ => None,
        }
    }

    /// Whether the value of this expression may be the address of a local of the lane.
    fn carries(&mut self, node: Node<'_>) -> bool {
        let field = |name| node.child_by_field_name(name);
        match node.kind() {
            "identifier" => self.name_carries(node, 0),
            "subscript_expression" | "field_expression" => self.part_carries(node),
            "pointer_expression" => {
                let is_address = field("operator").is_some_and(|op| op.kind() == "&");
                let variable = field("argument").and_then(|it| root(self.names, it));
                let local = variable.filter(|(it, _)| is_address && self.is_local(*it));
                self.taken.extend(local.map(|(variable, _)| variable));
                local.is_some()
            }
            "binary_expression" => {
                let operator = field("operator").map_or("", |operator| operator.kind());
                let left = field("left").is_some_and(|it| self.carries(it));
                let right = field("right").is_some_and(|it| self.carries(it));
                match operator {
                    "-" => left && !right,
                    "+" | "|" | "&" | "^" => left || right,
                    _ => false,
                }
            }
            "conditional_expression" => {
                let first = field("consequence").is_some_and(|it| self.carries(it));
                field("alternative").is_some_and(|it| self.carries(it)) || first
            }
            "assignment_expression" | "comma_expression" => {
                field("right").is_some_and(|it| self.carries(it))
            }
            "cast_expression" => {
                let is_variable = field("type").is_some_and(|it| self.is_variable(it));
                !is_variable && field("value").is_some_and(|it| self.carries(it))
            }
            "compound_literal_expression" => field("value").is_some_and(|it| self.any_carries(it)),
            "parenthesized_expression" | "initializer_list" | "initializer_pair" => {
                self.any_carries(node)
            }
            _ => false,
        }
    }

    fn any_carries(&mut self, node: Node<'_>) -> bool {
        let mut found = false;
        for child in children(node) {
            found |= self.carries(child);
        }
        found
    }

    /// Whether the type of a cast names a variable: the parser always reads `(a) & b` as a cast.
    fn is_variable(&self, descriptor: Node<'_>) -> bool {
        let name = descriptor.child_by_field_name("type");
        let variable = name.and_then(|name| self.names.of(name));
        variable.is_some_and(|variable| self.names.variables[variable].place != Storage::Fixed)
    }

    /// Whether a name that is followed by `indexed` subscripts may carry an address.
    fn name_carries(&mut self, node: Node<'_>, indexed: usize) -> bool {
        let Some(variable) = self.names.of(node).filter(|it| self.is_local(*it)) else {
            return false;
        };
        // An array that is not fully indexed is its address.
        if self.names.variables[variable].dimensions > indexed {
            self.taken.insert(variable);
            return true;
        }
        let is_of_it = |(carrier, _): &(usize, _)| *carrier == variable;
        match self.names.variables[variable].dimensions {
            0 if indexed > 0 => false,
            _ => self.carriers.iter().any(is_of_it),
        }
    }

    fn part_carries(&mut self, node: Node<'_>) -> bool {
        let Some((variable, _)) = root(self.names, node) else {
            return false;
        };
        if let Some(field) = self.last_field(node) {
            return self.carriers.contains(&(variable, Some(field)))
                || self.carriers.contains(&(variable, None));
        }
        let (mut inner, mut indexed) = (node, 0);
        while inner.kind() == "subscript_expression" {
            let Some(argument) = inner.child_by_field_name("argument") else {
                return false;
            };
            (inner, indexed) = (argument, indexed + 1);
        }
        inner.kind() == "identifier" && self.name_carries(inner, indexed)
    }
}
