//! Finds the declaration of each name in a function. C lets a program declare a name anywhere and
//! shadow another, so renaming is safe only with these results. Built once for each function that
//! has a `foreach`; every later pass reads it.

use std::collections::HashMap;
use std::ops::Range;

use tree_sitter::Node;

use crate::diagnostic::Diagnostic;
use crate::source::Source;

/// Where a variable lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Storage {
    /// A parameter, or a local of the function outside of its lanes: all lanes share it.
    Outer,
    /// A local of a lane, in the `foreach` of this number.
    Lane(usize),
    /// The counter of a `foreach`.
    Index(usize),
    /// Static, extern, a function, an enumerator, a type: no lane has its own.
    Fixed,
}

impl Storage {
    /// Whether every lane of this `foreach` has its own copy.
    pub(crate) fn is_of(self, lane: usize) -> bool {
        self == Self::Lane(lane) || self == Self::Index(lane)
    }
}

pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) place: Storage,
    /// The place where the variable's name is declared.
    pub(crate) declared: Range<usize>,
    /// The end of the variable's scope.
    pub(crate) scope_end: usize,
    /// The number of the variable's outermost array dimensions.
    pub(crate) dimensions: usize,
    /// True if this is, or may be, an enumerator: a constant that may be an array's size.
    pub(crate) is_constant: bool,
}

/// One variable in one declaration of a function.
pub(crate) struct Declarator<'t> {
    pub(crate) variable: usize,
    pub(crate) declaration: Node<'t>,
    pub(crate) declarator: Node<'t>,
    pub(crate) identifier: Node<'t>,
    pub(crate) value: Option<Node<'t>>,
}

/// One `foreach (index, count) body`.
pub(crate) struct Foreach<'t> {
    pub(crate) statement: Node<'t>,
    pub(crate) header: Node<'t>,
    pub(crate) index: Node<'t>,
    pub(crate) count: Node<'t>,
    pub(crate) body: Node<'t>,
    pub(crate) variable: usize,
    /// A local of the function that has the same name as the index.
    pub(crate) same_outside: Option<usize>,
}

#[derive(Default)]
pub(crate) struct Names<'t> {
    pub(crate) variables: Vec<Variable>,
    pub(crate) declarators: Vec<Declarator<'t>>,
    pub(crate) foreach: Vec<Foreach<'t>>,
    /// The variable of each use, by the first byte of the name in the text.
    pub(crate) uses: HashMap<usize, usize>,
    /// Declarations of types in lanes: a `typedef`, or a specifier with a body.
    pub(crate) types: Vec<Node<'t>>,
}

impl Names<'_> {
    pub(crate) fn of(&self, node: Node<'_>) -> Option<usize> {
        self.uses.get(&node.start_byte()).copied()
    }

    /// The `foreach` whose body this byte lies in.
    pub(crate) fn lane_at(&self, at: usize) -> Option<usize> {
        let mut all = self.foreach.iter();
        all.position(|foreach| foreach.body.byte_range().contains(&at))
    }
}

/// The children of a node that are not punctuation.
pub(crate) fn children(node: Node<'_>) -> Vec<Node<'_>> {
    node.named_children(&mut node.walk()).collect()
}

/// The name that a declarator declares.
pub(crate) fn declared_identifier(mut node: Node<'_>) -> Option<Node<'_>> {
    loop {
        node = match node.kind() {
            "identifier" | "type_identifier" => return Some(node),
            "parenthesized_declarator" | "attributed_declarator" => {
                let is_declarator = |child: &Node<'_>| {
                    child.kind().ends_with("declarator") || child.kind().ends_with("identifier")
                };
                children(node).into_iter().find(is_declarator)?
            }
            _ => node.child_by_field_name("declarator")?,
        }
    }
}

/// The variables of the file, with their numbers of array dimensions.
pub(crate) type Globals<'a> = HashMap<&'a str, usize>;

/// Array dimensions of a name that only a header can declare: it may be an array.
const UNKNOWN_DIMENSIONS: usize = 16;

pub(crate) fn globals<'a>(source: &Source<'a>, root: Node<'_>) -> Globals<'a> {
    let mut found = Globals::new();
    for node in children(root) {
        if node.kind() == "declaration" {
            let mut cursor = node.walk();
            for node in node.children_by_field_name("declarator", &mut cursor) {
                let is_initialised = node.kind() == "init_declarator";
                let inner = node.child_by_field_name("declarator");
                let declarator = inner.filter(|_| is_initialised).unwrap_or(node);
                if let Some(name) = declared_identifier(declarator) {
                    let (dimensions, _) = shape(name, declarator);
                    found.insert(&source.text[name.byte_range()], dimensions);
                }
            }
        }
    }
    found
}

pub(crate) fn resolve<'t>(
    source: &Source<'_>,
    globals: &Globals<'_>,
    function: Node<'t>,
) -> Result<Names<'t>, Vec<Diagnostic>> {
    let mut resolver = Resolver {
        source,
        globals,
        names: Names::default(),
        scopes: vec![Scope::new(function)],
        lane: None,
        faults: Vec::new(),
    };
    if let Some(declarator) = function.child_by_field_name("declarator") {
        resolver.parameters(declarator);
    }
    if let Some(body) = function.child_by_field_name("body") {
        resolver.walk(body);
    }
    match resolver.faults.is_empty() {
        true => Ok(resolver.names),
        false => Err(resolver.faults),
    }
}

struct Scope {
    end: usize,
    names: HashMap<String, usize>,
}

impl Scope {
    fn new(node: Node<'_>) -> Self {
        let (end, names) = (node.end_byte(), HashMap::new());
        Self { end, names }
    }
}

struct Resolver<'a, 't> {
    source: &'a Source<'a>,
    globals: &'a Globals<'a>,
    names: Names<'t>,
    scopes: Vec<Scope>,
    lane: Option<usize>,
    faults: Vec<Diagnostic>,
}

impl<'t> Resolver<'_, 't> {
    fn text(&self, node: Node<'_>) -> &str {
        &self.source.text[node.byte_range()]
    }

    fn refuse(&mut self, node: Node<'_>, reason: impl Into<String>) {
        let fault = Diagnostic::refused(self.source.text, node.start_byte(), reason);
        self.faults.push(fault);
    }

    fn parameters(&mut self, declarator: Node<'t>) {
        let mut node = declarator;
        while node.kind() != "function_declarator" {
            let Some(inner) = node.child_by_field_name("declarator") else {
                return;
            };
            node = inner;
        }
        let parameters = node.child_by_field_name("parameters");
        for parameter in parameters.map(children).unwrap_or_default() {
            let declarator = parameter.child_by_field_name("declarator");
            if let Some(identifier) = declarator.and_then(declared_identifier) {
                // An array parameter is a pointer.
                self.declare(identifier, Storage::Outer, 0);
            }
        }
    }

    fn look_up(&self, name: &str) -> Option<usize> {
        let mut scopes = self.scopes.iter().rev();
        scopes.find_map(|scope| scope.names.get(name).copied())
    }

    fn declare(&mut self, identifier: Node<'t>, place: Storage, dimensions: usize) -> usize {
        let name = self.text(identifier).to_owned();
        let scope = self.scopes.last_mut().expect("the function is a scope");
        if let Some(known) = scope.names.get(&name).copied() {
            let first = &self.names.variables[known];
            let at = identifier.start_byte();
            let conditions = |at| self.source.conditions(0, at);
            let is_alternative = conditions(at) != conditions(first.declared.start);
            if place != Storage::Fixed && !is_alternative {
                self.refuse(
                    identifier,
                    format!("`{name}` is declared twice in this scope"),
                );
            }
            self.names.uses.insert(at, known);
            return known;
        }
        if self.source.macros.contains_key(&name) && place != Storage::Fixed {
            self.refuse(identifier, format!("`{name}` is also the name of a macro"));
        }
        let scope = self.scopes.last_mut().expect("the function is a scope");
        let variable = self.names.variables.len();
        scope.names.insert(name.clone(), variable);
        self.names.variables.push(Variable {
            name,
            place,
            declared: identifier.byte_range(),
            scope_end: scope.end,
            dimensions,
            is_constant: false,
        });
        self.names.uses.insert(identifier.start_byte(), variable);
        variable
    }

    fn walk(&mut self, node: Node<'t>) {
        match node.kind() {
            "while_statement" if self.source.foreach.contains(&node.start_byte()) => {
                self.foreach(node);
            }
            "compound_statement" | "for_statement" => {
                self.scopes.push(Scope::new(node));
                self.walk_children(node);
                self.scopes.pop();
            }
            "declaration" => self.declaration(node),
            "type_definition" => self.type_definition(node),
            "struct_specifier" | "union_specifier" | "enum_specifier" => {
                if let Some(body) = node.child_by_field_name("body") {
                    if self.lane.is_some() {
                        self.names.types.push(node);
                    }
                    self.walk_children(body);
                }
            }
            "enumerator" => self.enumerator(node),
            "parameter_list" => {}
            "gnu_asm_output_operand" | "gnu_asm_input_operand" => {
                if let Some(value) = node.child_by_field_name("value") {
                    self.walk(value);
                }
            }
            "identifier" => self.name(node, true),
            "type_identifier" => self.name(node, false),
            "call_expression" => {
                for child in children(node) {
                    match child.kind() {
                        "identifier" => self.name(child, false),
                        _ => self.walk(child),
                    }
                }
            }
            _ => self.walk_children(node),
        }
    }

    /// A use of a name. If the file does not declare the name, a header may.
    fn name(&mut self, node: Node<'t>, may_be_of_header: bool) {
        let name = self.text(node);
        let may_be_of_header = may_be_of_header && !self.source.macros.contains_key(name);
        let variable = match (self.look_up(name), self.globals.get(name).copied()) {
            (Some(known), _) => known,
            (None, Some(dimensions)) => self.global(node, dimensions, false),
            (None, None) if may_be_of_header => self.global(node, UNKNOWN_DIMENSIONS, true),
            (None, None) => return,
        };
        self.names.uses.insert(node.start_byte(), variable);
    }

    /// Adds a variable of the file to the function's variables when the function first names it.
    fn global(&mut self, node: Node<'t>, dimensions: usize, is_constant: bool) -> usize {
        let name = self.text(node).to_owned();
        let variable = self.names.variables.len();
        self.scopes[0].names.insert(name.clone(), variable);
        self.names.variables.push(Variable {
            name,
            place: Storage::Fixed,
            declared: 0..0,
            scope_end: 0,
            dimensions,
            is_constant,
        });
        variable
    }

    fn walk_children(&mut self, node: Node<'t>) {
        for child in children(node) {
            self.walk(child);
        }
    }

    fn enumerator(&mut self, node: Node<'t>) {
        if let Some(value) = node.child_by_field_name("value") {
            self.walk(value);
        }
        if let Some(name) = node.child_by_field_name("name") {
            let variable = self.declare(name, Storage::Fixed, 0);
            self.names.variables[variable].is_constant = true;
        }
    }

    fn type_definition(&mut self, node: Node<'t>) {
        if let Some(specifier) = node.child_by_field_name("type") {
            let known = self.names.types.len();
            self.walk(specifier);
            // A body inside it moves with the whole definition.
            self.names.types.truncate(known);
        }
        let declarators: Vec<_> = node
            .children_by_field_name("declarator", &mut node.walk())
            .collect();
        for declarator in declarators {
            self.sizes(declarator);
            if let Some(name) = declared_identifier(declarator) {
                self.declare(name, Storage::Fixed, 0);
            }
        }
        if self.lane.is_some() {
            self.names.types.push(node);
        }
    }

    fn declaration(&mut self, node: Node<'t>) {
        let specifiers = children(node);
        let begin = node.child_by_field_name("declarator");
        let begin = begin.map_or(node.end_byte(), |declarator| declarator.start_byte());
        let specifiers = specifiers.iter().filter(|child| child.start_byte() < begin);
        let mut is_fixed = false;
        for specifier in specifiers.copied() {
            let text = self.text(specifier);
            is_fixed |= matches!(text, "static" | "extern" | "_Thread_local" | "__thread");
            self.walk(specifier);
        }
        // `a * b;` is a product if `a` is a variable.
        let specifier = node.child_by_field_name("type");
        let known = specifier.and_then(|specifier| self.names.of(specifier));
        if known.is_some_and(|known| self.names.variables[known].place != Storage::Fixed) {
            return self.walk_children(node);
        }
        let declarators: Vec<_> = node
            .children_by_field_name("declarator", &mut node.walk())
            .collect();
        for declarator in declarators {
            self.declarator(node, declarator, is_fixed);
        }
    }

    fn declarator(&mut self, declaration: Node<'t>, node: Node<'t>, is_fixed: bool) {
        let value = node.child_by_field_name("value");
        let declarator = match node.kind() {
            "init_declarator" => node.child_by_field_name("declarator").unwrap_or(node),
            _ => node,
        };
        self.sizes(declarator);
        let Some(identifier) = declared_identifier(declarator) else {
            return;
        };
        let (dimensions, is_function) = shape(identifier, declarator);
        let place = match self.lane {
            _ if is_fixed || is_function => Storage::Fixed,
            Some(lane) => Storage::Lane(lane),
            None => Storage::Outer,
        };
        let variable = self.declare(identifier, place, dimensions);
        if let Some(value) = value {
            self.walk(value);
        }
        self.names.declarators.push(Declarator {
            variable,
            declaration,
            declarator,
            identifier,
            value,
        });
    }

    /// The names in the array sizes of a declarator.
    fn sizes(&mut self, declarator: Node<'t>) {
        if let Some(size) = declarator.child_by_field_name("size") {
            self.walk(size);
        }
        for child in children(declarator) {
            if child.kind().ends_with("declarator") {
                self.sizes(child);
            }
        }
    }

    fn foreach(&mut self, node: Node<'t>) {
        if self.lane.is_some() {
            return self.refuse(node, "a `foreach` inside of a lane; write an ordinary loop");
        }
        let Some((header, index, count)) = foreach_header(node) else {
            return self.refuse(
                node,
                "this must be `foreach (index, count)`, the index a name",
            );
        };
        let body = node.child_by_field_name("body");
        let Some(body) = body.filter(|body| body.kind() == "compound_statement") else {
            return self.refuse(node, "the body of a `foreach` needs braces");
        };
        self.walk(count);
        let number = self.names.foreach.len();
        let same_outside = self
            .look_up(self.text(index))
            .filter(|known| self.names.variables[*known].place == Storage::Outer);
        self.scopes.push(Scope::new(node));
        let variable = self.declare(index, Storage::Index(number), 0);
        self.names.foreach.push(Foreach {
            statement: node,
            header,
            index,
            count,
            body,
            variable,
            same_outside,
        });
        self.lane = Some(number);
        self.walk(body);
        self.lane = None;
        self.scopes.pop();
    }
}

fn foreach_header(node: Node<'_>) -> Option<(Node<'_>, Node<'_>, Node<'_>)> {
    let header = node.child_by_field_name("condition")?;
    let pair = header.named_child(0)?;
    let index = pair.child_by_field_name("left")?;
    let count = pair.child_by_field_name("right")?;
    let is_header = pair.kind() == "comma_expression"
        && index.kind() == "identifier"
        && count.kind() != "comma_expression";
    is_header.then_some((header, index, count))
}

/// Array dimensions of the name itself, and whether it is a function.
fn shape(identifier: Node<'_>, declarator: Node<'_>) -> (usize, bool) {
    let (mut node, mut dimensions) = (identifier, 0);
    while node != declarator {
        let Some(parent) = node.parent() else { break };
        node = parent;
        match node.kind() {
            "array_declarator" => dimensions += 1,
            "function_declarator" => return (dimensions, true),
            "pointer_declarator" => break,
            _ => {}
        }
    }
    (dimensions, false)
}
