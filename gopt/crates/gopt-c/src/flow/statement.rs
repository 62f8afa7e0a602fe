//! The paths through statements. Every function takes the point where a statement begins and
//! returns the point where the next one begins.

use super::{Builder, Jump, LanePoints, MARKS, Mark, Node, Point, Step, Target, children};

impl<'t> Builder<'_, 't> {
    pub(super) fn statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let begin = at;
        let end = match node.kind() {
            "compound_statement" | "else_clause" | "attributed_statement" => {
                self.statements(node, at)
            }
            "expression_statement" => self.expression_statement(node, at),
            "declaration" => self.declaration(node, at),
            "if_statement" => self.if_statement(node, at),
            "while_statement" => self.while_statement(node, at),
            "do_statement" => self.do_statement(node, at),
            "for_statement" => self.for_statement(node, at),
            "switch_statement" => self.switch_statement(node, at),
            "case_statement" => self.case_statement(node, at),
            "labeled_statement" => self.labeled_statement(node, at),
            "goto_statement" => {
                self.gotos.push((at, node));
                self.point()
            }
            "break_statement" | "continue_statement" | "return_statement" => self.jump(node, at),
            "type_definition" => at,
            kind if kind.starts_with("seh_") || kind.starts_with("preproc_") => {
                self.refuse(node, "this statement is not C");
                at
            }
            _ => self.expression(node, at, true),
        };
        // `#if` may leave a jump out; such a jump does not end the path.
        if node.kind().ends_with("_statement") && self.is_optional(node) {
            self.edge(begin, end);
        }
        end
    }

    fn statements(&mut self, node: Node<'t>, mut at: Point) -> Point {
        for child in children(node) {
            at = self.statement(child, at);
        }
        at
    }

    fn expression_statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let Some(inner) = node.named_child(0) else {
            return at;
        };
        match self.mark_of(inner) {
            Some(arguments) => self.mark(node, arguments, at),
            None => self.expression(inner, at, false),
        }
    }

    /// The arguments, if this calls `g_expensive`.
    pub(super) fn mark_of(&self, node: Node<'t>) -> Option<Node<'t>> {
        let function = node.child_by_field_name("function")?;
        let is_mark = node.kind() == "call_expression" && MARKS.contains(&self.text(function));
        is_mark.then(|| node.child_by_field_name("arguments"))?
    }

    fn mark(&mut self, statement: Node<'t>, arguments: Node<'t>, at: Point) -> Point {
        let Some(lane) = self.lane else {
            self.refuse(statement, "an expensive access outside of a `foreach`");
            return at;
        };
        if self.in_expression > 0 {
            self.refuse(
                statement,
                "no lane can wait inside of a statement expression",
            );
        }
        let [address] = children(arguments)[..] else {
            self.refuse(statement, "the mark takes one address");
            return at;
        };
        let at = self.expression(address, at, false);
        self.flow.marks.push(Mark {
            statement,
            address,
            lane,
        });
        self.after(at, Step::Switch(self.flow.marks.len() - 1))
    }

    fn declaration(&mut self, node: Node<'t>, mut at: Point) -> Point {
        let names = self.names;
        let mut declares = false;
        for declared in &names.declarators {
            if declared.declaration != node {
                continue;
            }
            declares = true;
            at = self.sizes(declared.declarator, declared.identifier, at);
            if let Some(value) = declared.value {
                at = self.expression(value, at, false);
            }
            if !self.is_optional(node) {
                at = self.after(at, Step::Write(declared.variable));
            }
        }
        match declares {
            true => at,
            false => self.expression(node, at, true),
        }
    }

    /// Reads the array sizes in a declarator, but not the name that it declares.
    fn sizes(&mut self, node: Node<'t>, identifier: Node<'t>, at: Point) -> Point {
        if node == identifier {
            return at;
        }
        if !node.byte_range().contains(&identifier.start_byte()) {
            return self.expression(node, at, true);
        }
        let children = children(node).into_iter();
        children.fold(at, |at, child| self.sizes(child, identifier, at))
    }

    fn field(&mut self, node: Node<'t>, name: &str, at: Point) -> Point {
        match node.child_by_field_name(name) {
            Some(child) => self.expression(child, at, false),
            None => at,
        }
    }

    fn if_statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let at = self.field(node, "condition", at);
        let end = self.point();
        for branch in ["consequence", "alternative"] {
            let begin = self.after(at, Step::Nothing);
            let reached = match node.child_by_field_name(branch) {
                Some(branch) => self.statement(branch, begin),
                None => begin,
            };
            self.edge(reached, end);
        }
        end
    }

    fn looped(&mut self, body: Option<Node<'t>>, at: Point, exit: Point, again: Point) -> Point {
        self.targets.push(Target::Loop { exit, again });
        let reached = body.map_or(at, |body| self.statement(body, at));
        self.targets.pop();
        reached
    }

    fn while_statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let mut all = self.names.foreach.iter();
        if let Some(number) = all.position(|foreach| foreach.statement == node) {
            return self.foreach(number, at);
        }
        let head = self.after(at, Step::Nothing);
        let tested = self.field(node, "condition", head);
        let exit = self.after(tested, Step::Nothing);
        let body = self.after(tested, Step::Nothing);
        let reached = self.looped(node.child_by_field_name("body"), body, exit, head);
        self.edge(reached, head);
        exit
    }

    fn do_statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let head = self.after(at, Step::Nothing);
        let (test, exit) = (self.point(), self.point());
        let reached = self.looped(node.child_by_field_name("body"), head, exit, test);
        self.edge(reached, test);
        let tested = self.field(node, "condition", test);
        self.edge(tested, head);
        self.edge(tested, exit);
        exit
    }

    fn for_statement(&mut self, node: Node<'t>, mut at: Point) -> Point {
        if let Some(initializer) = node.child_by_field_name("initializer") {
            at = match initializer.kind() {
                "declaration" => self.declaration(initializer, at),
                _ => self.expression(initializer, at, false),
            };
        }
        let head = self.after(at, Step::Nothing);
        let tested = self.field(node, "condition", head);
        let (update, exit) = (self.point(), self.after(tested, Step::Nothing));
        let body = self.after(tested, Step::Nothing);
        let reached = self.looped(node.child_by_field_name("body"), body, exit, update);
        self.edge(reached, update);
        let updated = self.field(node, "update", update);
        self.edge(updated, head);
        exit
    }

    fn switch_statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let head = self.field(node, "condition", at);
        let exit = self.after(head, Step::Nothing);
        let before_first_case = self.point();
        self.switches.push(head);
        self.targets.push(Target::Switch { exit });
        if let Some(body) = node.child_by_field_name("body") {
            let reached = self.statement(body, before_first_case);
            self.edge(reached, exit);
        }
        self.targets.pop();
        self.switches.pop();
        exit
    }

    fn case_statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let mut at = self.after(at, Step::Nothing);
        if let Some(head) = self.switches.last().copied() {
            self.edge(head, at);
        }
        let value = node.child_by_field_name("value");
        for child in children(node) {
            if Some(child) != value {
                at = self.statement(child, at);
            }
        }
        at
    }

    fn labeled_statement(&mut self, node: Node<'t>, at: Point) -> Point {
        let mut at = self.after(at, Step::Nothing);
        let label = node.child_by_field_name("label");
        if let Some(label) = label {
            let place = (at, node.start_byte());
            self.labels.insert(self.text(label), place);
            self.flow.has_label |= self.lane.is_some();
        }
        for child in children(node) {
            if Some(child) != label {
                at = self.statement(child, at);
            }
        }
        at
    }

    /// Where a `break` or `continue` leads, unless it leads out of a lane.
    fn target(&self, jump: Jump) -> Result<Option<Point>, usize> {
        for target in self.targets.iter().rev() {
            match *target {
                Target::Lane { number } => return Err(number),
                Target::Loop { again, .. } if jump == Jump::Next => return Ok(Some(again)),
                Target::Loop { exit, .. } | Target::Switch { exit } if jump == Jump::Break => {
                    return Ok(Some(exit));
                }
                _ => {}
            }
        }
        Ok(None)
    }

    fn jump(&mut self, node: Node<'t>, at: Point) -> Point {
        let (jump, target) = match node.kind() {
            "break_statement" => (Jump::Break, self.target(Jump::Break)),
            "continue_statement" => (Jump::Next, self.target(Jump::Next)),
            _ => (Jump::Return, self.lane.map_or(Ok(None), Err)),
        };
        let at = match node.named_child(0) {
            Some(value) if jump == Jump::Return => self.expression(value, at, false),
            _ => at,
        };
        match target {
            Ok(Some(to)) => self.edge(at, to),
            Ok(None) => {}
            Err(lane) => {
                if self.in_expression > 0 {
                    self.refuse(node, "this leaves the lane from inside of an expression");
                }
                self.flow.jumps.push((node, jump, lane));
                let points = self.flow.lanes[lane];
                self.edge(at, points.head);
                if jump == Jump::Break {
                    self.edge(at, points.exit);
                }
            }
        }
        self.point()
    }

    fn foreach(&mut self, number: usize, at: Point) -> Point {
        let names = self.names;
        let foreach = &names.foreach[number];
        let counted = self.expression(foreach.count, at, false);
        let head = self.after(counted, Step::Nothing);
        let exit = self.after(head, Step::Nothing);
        let begin = self.after(head, Step::Write(foreach.variable));
        let points = LanePoints { head, begin, exit };
        self.flow.lanes.push(points);
        let around = std::mem::take(&mut self.targets);
        self.targets = vec![Target::Lane { number }];
        let switches = std::mem::take(&mut self.switches);
        self.lane = Some(number);
        let reached = self.statement(foreach.body, begin);
        self.edge(reached, head);
        self.lane = None;
        self.targets = around;
        self.switches = switches;
        exit
    }
}
