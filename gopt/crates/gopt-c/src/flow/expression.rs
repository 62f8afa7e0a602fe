//! Reads and writes of expressions, in an order that C allows.

use super::{Builder, Node, Point, SharedWrite, Step, WriteKind, children};
use crate::names::{Names, Storage};
use crate::pointed::Path;

/// The variable that an lvalue names without following a pointer, and whether the lvalue names the
/// whole variable.
pub(crate) fn root(names: &Names<'_>, node: Node<'_>) -> Option<(usize, bool)> {
    let (mut node, mut indexed, mut is_whole) = (node, 0, true);
    loop {
        match node.kind() {
            "identifier" | "type_identifier" => {
                let variable = names.of(node)?;
                // An index into a value that is not an array follows a pointer. The type of a field
                // is not known here, so an index after a field counts as a part.
                let is_array = indexed <= names.variables[variable].dimensions;
                return is_array.then_some((variable, is_whole));
            }
            "parenthesized_expression" => node = node.named_child(0)?,
            "subscript_expression" => {
                (indexed, is_whole) = (indexed + 1, false);
                node = node.child_by_field_name("argument")?;
            }
            "field_expression" => {
                if node.child_by_field_name("operator")?.kind() == "->" {
                    return None;
                }
                (indexed, is_whole) = (0, false);
                node = node.child_by_field_name("argument")?;
            }
            _ => return None,
        }
    }
}

impl<'t> Builder<'_, 't> {
    /// `maybe`: the expression may be skipped, so the variables that it writes may keep their old
    /// values.
    pub(super) fn expression(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        match node.kind() {
            "identifier" | "type_identifier" => match self.names.of(node) {
                Some(variable) => self.after(at, Step::Read(variable)),
                None => at,
            },
            "sizeof_expression" | "parameter_list" | "macro_type_specifier" => at,
            "compound_statement" => self.statement_expression(node, at),
            "assignment_expression" => self.assignment(node, at, maybe),
            "update_expression" => self.update(node, at, maybe),
            "binary_expression" => self.binary(node, at, maybe),
            "conditional_expression" => self.conditional(node, at, maybe),
            "call_expression" => self.call(node, at, maybe),
            "field_expression" | "subscript_expression" | "pointer_expression" => {
                self.place(node, at, maybe)
            }
            _ => self.operands(node, at, maybe),
        }
    }

    fn operands(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        let children = children(node).into_iter();
        children.fold(at, |at, child| self.expression(child, at, maybe))
    }

    /// A read of a place, or of its address.
    fn place(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        let operator = node.child_by_field_name("operator");
        if operator.is_some_and(|operator| operator.kind() == "&") {
            let place = node.child_by_field_name("argument");
            return match place.filter(|place| self.path(*place).is_some()) {
                Some(place) => self.way(place, at, maybe),
                None => self.operands(node, at, maybe),
            };
        }
        let Some(path) = self.path(node) else {
            return self.operands(node, at, maybe);
        };
        let at = self.way(node, at, maybe);
        let read = self.pointed.read_by(&path).into_iter();
        read.fold(at, |at, variable| self.after(at, Step::Read(variable)))
    }

    fn path(&self, node: Node<'t>) -> Option<Path> {
        Path::of(self.source, self.names, node)
    }

    /// The reads of the pointer and of the indices that lead to a place.
    fn way(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        let inner = match node.kind() {
            "parenthesized_expression" => node.named_child(0),
            "field_expression" | "subscript_expression" | "pointer_expression" => {
                node.child_by_field_name("argument")
            }
            _ => return self.expression(node, at, maybe),
        };
        let at = inner.map_or(at, |inner| self.way(inner, at, maybe));
        match node.kind() {
            "subscript_expression" => self.operand(node, "index", at, maybe),
            _ => at,
        }
    }

    fn statement_expression(&mut self, node: Node<'t>, at: Point) -> Point {
        self.in_expression += 1;
        let end = self.statement(node, at);
        self.in_expression -= 1;
        end
    }

    fn call(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        if self.mark_of(node).is_some() {
            self.refuse(
                node,
                "the mark of an expensive access must be a statement of its own",
            );
        }
        self.operands(node, at, maybe)
    }

    fn operand(&mut self, node: Node<'t>, name: &str, at: Point, maybe: bool) -> Point {
        match node.child_by_field_name(name) {
            Some(operand) => self.expression(operand, at, maybe),
            None => at,
        }
    }

    fn binary(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        let operator = node.child_by_field_name("operator");
        let is_lazy = operator.is_some_and(|op| matches!(op.kind(), "&&" | "||"));
        let at = self.operand(node, "left", at, maybe);
        self.operand(node, "right", at, maybe || is_lazy)
    }

    fn conditional(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        let at = self.operand(node, "condition", at, maybe);
        let at = self.operand(node, "consequence", at, true);
        self.operand(node, "alternative", at, true)
    }

    fn assignment(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        let operator = node.child_by_field_name("operator");
        let is_plain = operator.is_some_and(|operator| operator.kind() == "=");
        let at = self.operand(node, "right", at, maybe);
        match node.child_by_field_name("left") {
            Some(left) => self.write(left, at, maybe, !is_plain),
            None => at,
        }
    }

    fn update(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        match node.child_by_field_name("argument") {
            Some(argument) => self.write(argument, at, maybe, true),
            None => at,
        }
    }

    fn write(&mut self, left: Node<'t>, at: Point, maybe: bool, is_update: bool) -> Point {
        let behind_pointer = || {
            let path = self.path(left)?;
            Some((self.pointed.of(&path)?, path.is_whole))
        };
        let Some((variable, is_whole)) = root(self.names, left).or_else(behind_pointer) else {
            return self.expression(left, at, maybe);
        };
        let mut at = match root(self.names, left) {
            Some(_) => self.indices(left, at, maybe),
            None => self.way(left, at, maybe),
        };
        if is_update {
            at = self.after(at, Step::Update(variable));
        }
        at = self.store(left, variable, is_update, at);
        match !is_whole || maybe || self.is_optional(left) {
            true => at,
            false => self.after(at, Step::Write(variable)),
        }
    }

    /// The reads of the indices that choose the written part of a variable.
    fn indices(&mut self, node: Node<'t>, at: Point, maybe: bool) -> Point {
        let at = match node.kind() {
            "subscript_expression" => self.operand(node, "index", at, maybe),
            _ => at,
        };
        let inner = match node.kind() {
            "parenthesized_expression" => node.named_child(0),
            _ => node.child_by_field_name("argument"),
        };
        inner.map_or(at, |inner| self.indices(inner, at, maybe))
    }

    /// Notes a write to a place that other lanes see as well.
    fn store(&mut self, left: Node<'t>, variable: usize, is_update: bool, at: Point) -> Point {
        let Some(lane) = self.lane else { return at };
        match self.names.variables[variable].place {
            Storage::Lane(_) => return at,
            Storage::Index(_) => {
                self.refuse(left, "a lane must not change the index");
                return at;
            }
            Storage::Outer | Storage::Fixed => {}
        }
        let kind = match self.part(left, lane) {
            WriteKind::Own => WriteKind::Own,
            _ if is_update => WriteKind::Update,
            part => part,
        };
        self.flow.shared_writes.push(SharedWrite {
            variable,
            at: left.start_byte(),
            lane,
            kind,
        });
        self.after(at, Step::Store(self.flow.shared_writes.len() - 1))
    }

    /// Which part of a variable this lvalue writes.
    fn part(&self, node: Node<'t>, lane: usize) -> WriteKind {
        let inner = match node.kind() {
            "subscript_expression" | "field_expression" => node.child_by_field_name("argument"),
            "parenthesized_expression" => node.named_child(0),
            _ => None,
        };
        let inner = inner.map_or(WriteKind::Same, |inner| self.part(inner, lane));
        let index = node.child_by_field_name("index");
        let own = match index {
            Some(index) if self.is_own(index, lane) => WriteKind::Own,
            Some(index) if self.names_any(index, &|_| true) => WriteKind::Part,
            _ => WriteKind::Same,
        };
        match (inner, own) {
            (WriteKind::Own, _) | (_, WriteKind::Own) => WriteKind::Own,
            (WriteKind::Part, _) | (_, WriteKind::Part) => WriteKind::Part,
            _ => WriteKind::Same,
        }
    }

    /// Whether every item has a different value of this expression: its number, moved or scaled by
    /// numbers that all items share.
    fn is_own(&self, node: Node<'t>, lane: usize) -> bool {
        let of_lane = |place: Storage| place.is_of(lane);
        let inner = |name| node.child_by_field_name(name);
        match node.kind() {
            "identifier" => {
                let variable = self.names.of(node);
                variable.is_some_and(|it| self.names.variables[it].place == Storage::Index(lane))
            }
            "parenthesized_expression" => {
                node.named_child(0).is_some_and(|it| self.is_own(it, lane))
            }
            "cast_expression" => inner("value").is_some_and(|it| self.is_own(it, lane)),
            "binary_expression" => {
                let (Some(left), Some(right)) = (inner("left"), inner("right")) else {
                    return false;
                };
                let operator = inner("operator").map_or("", |operator| operator.kind());
                let moves = matches!(operator, "+" | "-" | "*" | "<<");
                let is_shared = |node| !self.names_any(node, &of_lane);
                moves
                    && (self.is_own(left, lane) && is_shared(right)
                        || self.is_own(right, lane) && is_shared(left))
            }
            _ => false,
        }
    }

    /// Whether the expression names a variable that is declared in a wanted place.
    fn names_any(&self, node: Node<'t>, is_wanted: &dyn Fn(Storage) -> bool) -> bool {
        let variable = self.names.of(node).map(|it| &self.names.variables[it]);
        variable.is_some_and(|it| !it.is_constant && is_wanted(it.place))
            || children(node)
                .into_iter()
                .any(|child| self.names_any(child, is_wanted))
    }
}
