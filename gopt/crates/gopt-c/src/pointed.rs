//! Places that all items share through a pointer: `s->last`, `w[0]`, `*sum`. The pointer is a
//! variable outside of the lanes, which no lane changes. Each such place that a lane writes counts
//! as a variable, so that `flow` sees its writes and reads. Made after `names`; read by `flow`.
//!
//! Two pointers may lead to the same memory, and a pointer may be in a field or be a local of
//! the lane; such places are not found.

use std::collections::HashSet;

use tree_sitter::Node;

use crate::names::{Names, Storage, Variable, children};
use crate::source::Source;

/// The shared places that lanes of a function write.
#[derive(Default)]
pub(crate) struct Pointed(Vec<Shared>);

struct Shared {
    path: Path,
    /// The number of the variable that stands for the place.
    variable: usize,
}

/// How an lvalue leads from a pointer to a place.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Path {
    pointer: usize,
    /// The fields after the pointer, with `.` or `->` before each. The first pointer is followed in
    /// any case, so `p->a` and `p[3].a` both have `.a`, and `*p` has none. Indices do not count.
    fields: String,
    /// True if no index chooses a part.
    pub(crate) is_whole: bool,
}

impl Path {
    /// The path of an lvalue, if it begins at a variable outside of the lanes and follows it as a
    /// pointer.
    pub(crate) fn of(source: &Source<'_>, names: &Names<'_>, node: Node<'_>) -> Option<Self> {
        let (mut node, mut fields, mut indexed, mut is_whole) = (node, String::new(), 0, true);
        loop {
            let argument = node.child_by_field_name("argument");
            let operator = node.child_by_field_name("operator");
            let operator = operator.map_or("", |operator| operator.kind());
            node = match node.kind() {
                "identifier" => break,
                "parenthesized_expression" => node.named_child(0)?,
                "subscript_expression" => {
                    (indexed, is_whole) = (indexed + 1, false);
                    argument?
                }
                "pointer_expression" if operator == "*" => {
                    let rest = fields.strip_prefix('.').unwrap_or(&fields);
                    fields = format!("->{rest}");
                    indexed = 0;
                    argument?
                }
                "field_expression" => {
                    let field = node.child_by_field_name("field")?;
                    let field = &source.text[field.byte_range()];
                    fields = format!("{operator}{field}{fields}");
                    indexed = 0;
                    argument?
                }
                _ => return None,
            };
        }
        let pointer = names.of(node)?;
        let variable = &names.variables[pointer];
        let is_outside = matches!(variable.place, Storage::Outer | Storage::Fixed);
        let fields = match fields.strip_prefix("->") {
            // An element of an array of pointers may be another pointer for each item.
            Some(_) if indexed > 0 => return None,
            Some("") => String::new(),
            Some(rest) if rest.starts_with("->") => rest.to_owned(),
            Some(rest) => format!(".{rest}"),
            None if indexed > variable.dimensions => fields,
            None => return None,
        };
        (is_outside && !variable.is_constant).then_some(Self {
            pointer,
            fields,
            is_whole,
        })
    }

    /// Whether the two places are equal, or one is a part of the other.
    fn overlaps(&self, other: &Self) -> bool {
        let contains = |outer: &str, inner: &str| {
            let rest = inner.strip_prefix(outer);
            rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('.') && !rest.contains("->")
            })
        };
        let (one, two) = (&*self.fields, &*other.fields);
        self.pointer == other.pointer && (contains(one, two) || contains(two, one))
    }
}

impl Pointed {
    /// Finds the places that lanes write, and adds a variable for each.
    pub(crate) fn find(source: &Source<'_>, names: &mut Names<'_>) -> Self {
        let mut pass = Pass {
            source,
            names,
            written: Vec::new(),
            changed: HashSet::new(),
        };
        for foreach in &names.foreach {
            pass.walk(foreach.body);
        }
        let Pass {
            written, changed, ..
        } = pass;
        let mut found = Self::default();
        for (path, name) in written {
            if changed.contains(&path.pointer) || found.of(&path).is_some() {
                continue;
            }
            let variable = names.variables.len();
            names.variables.push(Variable {
                name,
                place: Storage::Fixed,
                declared: 0..0,
                scope_end: 0,
                dimensions: 0,
                is_constant: false,
            });
            found.0.push(Shared { path, variable });
        }
        found
    }

    /// The variable that stands for this place.
    pub(crate) fn of(&self, path: &Path) -> Option<usize> {
        let is_it = |it: &&Shared| it.path.pointer == path.pointer && it.path.fields == path.fields;
        self.0.iter().find(is_it).map(|it| it.variable)
    }

    /// The variables whose values a read of this place may use.
    pub(crate) fn read_by(&self, path: &Path) -> Vec<usize> {
        let all = self.0.iter().filter(|it| it.path.overlaps(path));
        all.map(|it| it.variable).collect()
    }
}

struct Pass<'a, 't> {
    source: &'a Source<'a>,
    names: &'a Names<'t>,
    /// Places that lanes write, each with the text of its first write.
    written: Vec<(Path, String)>,
    /// Variables that lanes write, or whose address they take.
    changed: HashSet<usize>,
}

impl Pass<'_, '_> {
    fn walk(&mut self, node: Node<'_>) {
        let field = |name| node.child_by_field_name(name);
        let place = match node.kind() {
            "assignment_expression" => field("left"),
            "update_expression" => field("argument"),
            "pointer_expression" => {
                let is_address = field("operator").is_some_and(|it| it.kind() == "&");
                let variable = field("argument").filter(|_| is_address);
                self.changed
                    .extend(variable.and_then(|it| self.variable(it)));
                None
            }
            _ => None,
        };
        if let Some(place) = place {
            if let Some(path) = Path::of(self.source, self.names, place) {
                let text = self.source.text[place.byte_range()].to_owned();
                self.written.push((path, text));
            }
            self.changed.extend(self.variable(place));
        }
        for child in children(node) {
            self.walk(child);
        }
    }

    /// The variable, if the lvalue names a variable itself, and not a place to which a variable
    /// leads.
    fn variable(&self, node: Node<'_>) -> Option<usize> {
        match node.kind() {
            "identifier" => self.names.of(node),
            "parenthesized_expression" => self.variable(node.named_child(0)?),
            _ => None,
        }
    }
}
