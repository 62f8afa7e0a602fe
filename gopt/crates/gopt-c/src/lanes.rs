//! Decides the new form of each variable of a function, and finds the last reasons to refuse the
//! function. It is the last pass before the output, and runs once for each function with a
//! `foreach`.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use tree_sitter::Node;

use crate::diagnostic::Diagnostic;
use crate::flow::{Flow, Jump, Live, SharedWrite, WriteKind};
use crate::names::{Declarator, Globals, Names, Storage, children};
use crate::pointed::Pointed;
use crate::source::Source;
use crate::{address, flow, names};

/// The analysis of one function.
pub(crate) struct Plan<'t> {
    pub(crate) function: Node<'t>,
    pub(crate) names: Names<'t>,
    pub(crate) flow: Flow<'t>,
    /// The variables that get an array, by `foreach`.
    pub(crate) arrays: Vec<BTreeSet<usize>>,
    pub(crate) warnings: Vec<Diagnostic>,
}

impl Plan<'_> {
    /// Whether a lane of this `foreach` leaves it by `break` or `return`.
    pub(crate) fn stops(&self, lane: usize) -> bool {
        let mut jumps = self.flow.jumps.iter();
        jumps.any(|(_, jump, of)| *of == lane && *jump != Jump::Next)
    }

    /// Whether a lane of this `foreach` ends the function.
    pub(crate) fn returns(&self, lane: usize) -> bool {
        let mut jumps = self.flow.jumps.iter();
        jumps.any(|(_, jump, of)| *of == lane && *jump == Jump::Return)
    }
}

pub(crate) fn plan<'t>(
    source: &Source<'_>,
    globals: &Globals<'_>,
    function: Node<'t>,
) -> Result<Plan<'t>, Vec<Diagnostic>> {
    let mut names = names::resolve(source, globals, function)?;
    let pointed = Pointed::find(source, &mut names);
    let flow = flow::build(source, &names, &pointed, function)?;
    let taken = address::check(source, &names)?;
    let Some(live) = Live::of(&flow, names.variables.len()) else {
        let reason = "this function is too large";
        return Err(vec![Diagnostic::refused(
            source.text,
            function.start_byte(),
            reason,
        )]);
    };
    let mut planner = Planner {
        source,
        names: &names,
        flow: &flow,
        live: &live,
        faults: Vec::new(),
        warnings: Vec::new(),
    };
    let arrays: Vec<_> = (0..names.foreach.len())
        .map(|lane| planner.arrays(lane, &taken))
        .collect();
    planner.check_lanes(&arrays);
    let (faults, warnings) = (planner.faults, planner.warnings);
    if !faults.is_empty() {
        return Err(faults);
    }
    Ok(Plan {
        function,
        names,
        flow,
        arrays,
        warnings,
    })
}

struct Planner<'a, 't> {
    source: &'a Source<'a>,
    names: &'a Names<'t>,
    flow: &'a Flow<'t>,
    live: &'a Live,
    faults: Vec<Diagnostic>,
    warnings: Vec<Diagnostic>,
}

impl<'t> Planner<'_, 't> {
    fn refuse(&mut self, at: usize, reason: impl Into<String>) {
        let fault = Diagnostic::refused(self.source.text, at, reason);
        self.faults.push(fault);
    }

    fn arrays(&mut self, lane: usize, taken: &HashSet<usize>) -> BTreeSet<usize> {
        let marks = self.flow.marks.iter().filter(|mark| mark.lane == lane);
        let marks: Vec<usize> = marks.map(|mark| mark.statement.start_byte()).collect();
        let across = &self.live.across[lane];
        let mut arrays: BTreeSet<usize> = self.private(lane);
        for (number, variable) in self.names.variables.iter().enumerate() {
            let is_ours = variable.place.is_of(lane);
            let scope = variable.declared.end..variable.scope_end;
            let is_waited_in = marks.iter().any(|mark| scope.contains(mark));
            if is_ours && (across.has(number) || taken.contains(&number) && is_waited_in) {
                arrays.insert(number);
            }
        }
        let jumps = &self.flow.jumps;
        if jumps
            .iter()
            .any(|(_, jump, of)| *of == lane && *jump != Jump::Next)
        {
            arrays.insert(self.names.foreach[lane].variable);
        }
        self.close(lane, &mut arrays);
        arrays
    }

    /// Locals of the function that each lane of this `foreach` uses as its own: every item writes
    /// them before it reads them, and no code after the loop reads them. Warns of other variables
    /// that several lanes write.
    fn private(&mut self, lane: usize) -> BTreeSet<usize> {
        let mut writes: BTreeMap<usize, Vec<&SharedWrite>> = BTreeMap::new();
        let of_lane = self.flow.shared_writes.iter();
        for write in of_lane.filter(|write| write.lane == lane) {
            writes.entry(write.variable).or_default().push(write);
        }
        let mut private = BTreeSet::new();
        let mut warned = Vec::new();
        for (variable, writes) in writes {
            let enters = self.live.enters_lane(self.flow, lane, variable);
            let leaves = self.live.leaves_loop(self.flow, lane, variable);
            let is_fixed = self.names.variables[variable].place == Storage::Fixed;
            let is_same = |write: &&&SharedWrite| write.kind == WriteKind::Same;
            let same = writes.iter().find(is_same).map(|write| write.at);
            match (enters || is_fixed, leaves) {
                (false, false) => {
                    if self.live.across[lane].has(variable) {
                        private.insert(variable);
                    }
                }
                (false, true) => {
                    let reason = format!(
                        "`{}` would have the value of the item that ran last, which need not \
                         be the last item; declare it inside of the lane",
                        self.names.variables[variable].name
                    );
                    self.refuse(writes[0].at, reason);
                }
                (true, _) => {
                    let reason = "what it holds may depend on the order in which items run";
                    warned.extend(same.map(|at| (variable, at, reason)));
                }
            }
        }
        for number in self.flow.overwritten(lane) {
            let SharedWrite { variable, at, .. } = self.flow.shared_writes[number];
            if !private.contains(&variable) {
                let reason = "another item may change it before this one reads it after an \
                              expensive access; use a local of the lane";
                warned.retain(|(other, ..)| *other != variable);
                warned.push((variable, at, reason));
            }
        }
        for (variable, at, reason) in warned {
            let name = &self.names.variables[variable].name;
            let reason = format!("all lanes share `{name}`: {reason}");
            self.warnings
                .push(Diagnostic::warning(self.source.text, at, reason));
        }
        private
    }

    /// An array is declared outside of the lane, so the names in its type and its size must be
    /// declared there, too.
    fn close(&self, lane: usize, arrays: &mut BTreeSet<usize>) {
        loop {
            let known = arrays.len();
            for declared in &self.names.declarators {
                if !arrays.contains(&declared.variable) {
                    continue;
                }
                arrays.extend(self.beside(declared));
                let begin = declared.declaration.start_byte();
                let mut end = declared.declarator.end_byte();
                if let Some(value) = declared.value.filter(|_| is_unsized(declared)) {
                    end = value.end_byte();
                }
                let mentioned = self.names.uses.iter();
                let mentioned = mentioned.filter(|(at, _)| (begin..end).contains(at));
                for variable in mentioned.map(|(_, variable)| *variable) {
                    let is_ours = self.names.variables[variable].place.is_of(lane);
                    let declared_here = self.names.variables[variable].declared.start;
                    // Other names in the same declaration are not part of this variable's type.
                    let is_type = !declared.declaration.byte_range().contains(&declared_here);
                    if is_ours && is_type {
                        arrays.insert(variable);
                    }
                }
            }
            if arrays.len() == known {
                return;
            }
        }
    }

    /// The other variables of a `for` head. A `for` head has room for one declaration or for
    /// assignments, not for both.
    fn beside(&self, declared: &Declarator<'t>) -> Vec<usize> {
        let declaration = declared.declaration;
        let parent = declaration.parent();
        let is_head = parent.is_some_and(|parent| parent.kind() == "for_statement");
        let all = self.names.declarators.iter();
        all.filter(|other| is_head && other.declaration == declaration)
            .map(|other| other.variable)
            .collect()
    }

    fn check_lanes(&mut self, arrays: &[BTreeSet<usize>]) {
        for (lane, foreach) in self.names.foreach.iter().enumerate() {
            let (body, index) = (foreach.body, foreach.index);
            self.check_declarations(lane, &arrays[lane]);
            self.check_macros(body, lane, &arrays[lane]);
            let outside = foreach.same_outside;
            if outside.is_some_and(|it| self.live.leaves_loop(self.flow, lane, it)) {
                let name = &self.names.variables[foreach.variable].name;
                let reason = format!("`{name}` is read after the loop, where it means nothing");
                self.refuse(index.start_byte(), reason);
            }
            if !self.flow.marks.iter().any(|mark| mark.lane == lane) {
                let reason = "no expensive access in this `foreach`: there is nothing to hide";
                let at = foreach.statement.start_byte();
                self.warnings
                    .push(Diagnostic::warning(self.source.text, at, reason));
            }
            let jumps = &self.flow.jumps;
            let stop = jumps
                .iter()
                .find(|(_, jump, of)| *of == lane && *jump != Jump::Next);
            if let Some((statement, _, _)) = stop {
                let reason = "items after the one that ends the loop may have run in part";
                let at = statement.start_byte();
                self.warnings
                    .push(Diagnostic::warning(self.source.text, at, reason));
            }
        }
        self.check_types();
    }

    fn check_declarations(&mut self, lane: usize, arrays: &BTreeSet<usize>) {
        let body = self.names.foreach[lane].body.byte_range();
        for declared in &self.names.declarators {
            if !body.contains(&declared.declaration.start_byte()) {
                continue;
            }
            let at = declared.identifier.start_byte();
            if self.has_variable_size(declared.declarator) {
                self.refuse(at, "an array of variable length in a lane");
            }
            let range = declared.declaration.byte_range();
            // Declarations between the braces of a type declare the type's members.
            let specifier = declared.declaration.child_by_field_name("type");
            let members = specifier.and_then(|it| it.child_by_field_name("body"));
            let members = members.map_or(0..0, |body| body.byte_range());
            let is_in = |attribute: &&std::ops::Range<usize>| {
                range.contains(&attribute.start) && !members.contains(&attribute.start)
            };
            let mut attributes = self.source.attributes.iter().filter(is_in);
            let text = |range: &std::ops::Range<usize>| &self.source.text[range.clone()];
            let words: Vec<&str> = attributes.by_ref().map(text).collect();
            if words.iter().any(|words| words.contains("cleanup")) {
                self.refuse(at, "a local with a cleanup in a lane");
            } else if arrays.contains(&declared.variable) {
                self.check_array(declared, &words);
            }
        }
    }

    /// Whether some array size in this declarator is known only at run time.
    fn has_variable_size(&self, declarator: Node<'_>) -> bool {
        let size = declarator.child_by_field_name("size");
        size.is_some_and(|size| self.reads_variable(size))
            || children(declarator)
                .into_iter()
                .filter(|child| child.kind().ends_with("declarator"))
                .any(|child| self.has_variable_size(child))
    }

    fn reads_variable(&self, node: Node<'_>) -> bool {
        match node.kind() {
            "sizeof_expression" => false,
            "identifier" => match self.names.of(node) {
                Some(variable) => !self.names.variables[variable].is_constant,
                None => false,
            },
            _ => children(node).into_iter().any(|it| self.reads_variable(it)),
        }
    }

    /// Refuses variables that cannot become an array with an element for each lane.
    fn check_array(&mut self, declared: &Declarator<'t>, attributes: &[&str]) {
        let at = declared.identifier.start_byte();
        let range = declared.declaration.start_byte()..declared.declarator.end_byte();
        let text = &self.source.text[range];
        let lives = "lives across an expensive access and";
        if text.contains("__auto_type") {
            self.refuse(at, format!("this {lives} needs a type by name"));
        }
        let is_aligned = text.contains("_Alignas") || text.contains("alignas");
        if is_aligned || attributes.iter().any(|words| !words.contains("unused")) {
            let reason = format!("this {lives} has an attribute that an array would not keep");
            self.refuse(at, reason);
        }
    }

    /// Refuses macros that may hide code that this tool must see.
    fn check_macros(&mut self, body: Node<'_>, lane: usize, arrays: &BTreeSet<usize>) {
        let ours = |variable: &&names::Variable| variable.place.is_of(lane);
        let locals = self.names.variables.iter().filter(ours);
        let mut locals: HashSet<&str> = locals.map(|it| it.name.as_str()).collect();
        let arrays = arrays.iter();
        locals.extend(arrays.map(|it| self.names.variables[*it].name.as_str()));
        let range = body.byte_range();
        let source = self.source;
        for place in source.identifiers_in(&range) {
            let name = &source.text[place.clone()];
            if crate::source::MARKS.contains(&name) || !source.macros.contains_key(name) {
                continue;
            }
            let words = hidden_words(source, name);
            let has = |word: &str| words.contains(word);
            let has_loop = has("for") || has("while") || has("do") || has("switch");
            let control = ["return", "goto", "g_expensive", "FPP_EXPENSIVE", "foreach"];
            let escaping = ["break", "continue"];
            let hidden = control
                .iter()
                .chain(escaping.iter().filter(|_| !has_loop))
                .find(|word| has(word));
            if let Some(word) = hidden {
                self.refuse(place.start, format!("the macro `{name}` hides a `{word}`"));
            } else if let Some(local) = words.iter().find(|word| locals.contains(*word)) {
                let reason = format!("the macro `{name}` uses the lane's local `{local}` by name");
                self.refuse(place.start, reason);
            }
        }
    }

    /// Types that lanes declare move out of the lanes, so their names must be unique.
    fn check_types(&mut self) {
        let mut known: HashSet<&str> = HashSet::new();
        for node in &self.names.types {
            let at = node.start_byte();
            for name in type_names(*node) {
                let text = &self.source.text[name.byte_range()];
                let is_word =
                    |place: &&std::ops::Range<usize>| &self.source.text[(*place).clone()] == text;
                let foreach = self.names.lane_at(at).map(|lane| &self.names.foreach[lane]);
                let body = foreach.map_or(at..at, |foreach| foreach.body.byte_range());
                let mut words = self.source.identifiers.iter().filter(is_word);
                let is_elsewhere = words.any(|place| !body.contains(&place.start));
                if !known.insert(text) || is_elsewhere {
                    let reason = format!("the type `{text}` of a lane has a name used elsewhere");
                    let fault = Diagnostic::refused(self.source.text, name.start_byte(), reason);
                    self.faults.push(fault);
                }
            }
        }
    }
}

/// The names that the declaration of a type adds: its tag, its `typedef` names, its enumerators.
fn type_names(node: Node<'_>) -> Vec<Node<'_>> {
    let mut found = Vec::new();
    if node.kind() == "type_definition" {
        let declarators = children(node).into_iter().skip(1);
        found.extend(declarators.filter_map(names::declared_identifier));
        let specifier = node.child_by_field_name("type");
        let with_body = specifier.filter(|it| it.child_by_field_name("body").is_some());
        found.extend(with_body.map(type_names).unwrap_or_default());
        return found;
    }
    found.extend(node.child_by_field_name("name"));
    if let Some(body) = node.child_by_field_name("body") {
        for member in children(body) {
            let is_enumerator = member.kind() == "enumerator";
            found.extend(member.child_by_field_name("name").filter(|_| is_enumerator));
        }
    }
    found
}

/// Whether this is an array that gets its size from its initialiser.
pub(crate) fn is_unsized(declared: &Declarator<'_>) -> bool {
    let mut node = declared.identifier;
    while node != declared.declarator {
        let Some(parent) = node.parent() else {
            return false;
        };
        if parent.kind() == "array_declarator" {
            return parent.child_by_field_name("size").is_none();
        }
        if parent.kind() == "pointer_declarator" {
            return false;
        }
        node = parent;
    }
    false
}

/// All identifiers that a macro of this file may expand to, through other macros.
fn hidden_words<'a>(source: &'a Source<'_>, name: &'a str) -> HashSet<&'a str> {
    let (mut found, mut waiting) = (HashSet::new(), vec![name]);
    while let Some(name) = waiting.pop() {
        for word in source
            .macros
            .get(name)
            .map_or(&[][..], |known| &known.names)
        {
            if found.insert(word.as_str()) {
                waiting.push(word);
            }
        }
    }
    found
}
