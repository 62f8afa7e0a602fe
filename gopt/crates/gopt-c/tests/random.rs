//! Random lane bodies: whatever their statements, declarations and nesting are, the transformed
//! function has the same results as the sequential one.

mod programs;

use proptest::prelude::*;

use programs::{Folder, compilers};

/// Makes the text of a lane from a stream of random bytes; every loop in it ends.
struct Maker<'a> {
    bytes: std::slice::Iter<'a, u8>,
    text: String,
    /// The readable variables in scope, innermost last.
    scope: Vec<String>,
    /// Counters of loops, which no other statement may write.
    counters: Vec<String>,
    depth: usize,
    loops: usize,
    switches: usize,
}

impl Maker<'_> {
    fn add(&mut self, text: String) {
        self.text.push_str(&text);
    }

    fn line(&mut self, text: String) {
        self.add(text + "\n");
    }

    fn pick(&mut self, of: u8) -> u8 {
        self.bytes.next().map_or(0, |byte| byte % of)
    }

    fn variable(&mut self) -> String {
        let number = usize::from(self.pick(255)) % self.scope.len();
        self.scope[number].clone()
    }

    fn value(&mut self) -> String {
        let (a, b) = (self.variable(), self.variable());
        match self.pick(7) {
            0 => format!("{a} + {b}"),
            1 => format!("({a} ^ ({b} >> 3)) * 5u"),
            2 => format!("t[{a} & 63]"),
            3 => format!("({a} & 1 ? {b} : {a} - 7u)"),
            4 => format!("({a} > 9u && {b} < 40u)"),
            5 => format!("{}u", self.pick(64)),
            _ => a,
        }
    }

    /// A variable or element that may be assigned to.
    fn place(&mut self) -> Option<String> {
        let name = self.variable();
        (!self.counters.contains(&name)).then_some(name)
    }

    fn statements(&mut self, most: u8) {
        let known = self.scope.len();
        for _ in 0..=self.pick(most) {
            self.statement();
        }
        self.scope.truncate(known);
    }

    fn block(&mut self) {
        self.depth += 1;
        self.text.push_str("{\n");
        self.statements(4);
        self.text.push_str("}\n");
        self.depth -= 1;
    }

    fn declare(&mut self) {
        let name = ["a", "b", "c", "d", "e"][usize::from(self.pick(5))].to_owned();
        let value = self.value();
        // The statement gets a block of its own, because C allows each name once in a block.
        self.text.push_str("{\n");
        let known = self.scope.len();
        match self.pick(4) {
            0 => self.add(format!(
                "unsigned {name}_[2] = {{1, {value}}};\nunsigned {name} = {name}_[1];\n"
            )),
            1 => self.add(format!(
                "struct {{ unsigned x, y; }} {name}_ = {{.y = {value}}};\n\
                 unsigned {name} = {name}_.y + {name}_.x;\n"
            )),
            2 => self.add(format!(
                "unsigned {name}_ = {value}, *p_{name} = &{name}_, {name} = 2;\n\
                 *p_{name} += {name};\n{name} ^= {name}_;\n"
            )),
            _ => self.add(format!(
                "const unsigned {name}_ = {value};\nunsigned {name} = {name}_;\n"
            )),
        }
        self.scope.push(name);
        self.depth += 1;
        self.statements(5);
        self.depth -= 1;
        self.scope.truncate(known);
        self.text.push_str("}\n");
    }

    fn looped(&mut self) {
        let name = format!("j{}", self.loops);
        self.loops += 1;
        let rounds = self.pick(4) + 1;
        let kind = self.pick(3);
        let head = match kind {
            0 => format!("for (unsigned s = second, {name} = s & 1; {name} < {rounds}; {name}++) "),
            1 => format!("{{ unsigned {name} = 0; while ({name}++ < {rounds}) "),
            _ => format!("{{ unsigned {name} = 0; do "),
        };
        self.text.push_str(&head);
        self.scope.push(name.clone());
        self.counters.push(name.clone());
        self.block();
        self.scope.pop();
        self.counters.pop();
        match kind {
            0 => {}
            1 => self.text.push_str("}\n"),
            _ => self.line(format!("while ({name}++ < {rounds}); }}")),
        }
        self.loops -= 1;
    }

    fn cases(&mut self) {
        let value = self.variable();
        self.line(format!("switch ({value} % 3) {{"));
        self.switches += 1;
        for label in ["case 0:", "case 1:", "default:"] {
            self.text.push_str(label);
            self.block();
            self.text.push_str("break;\n");
        }
        self.switches -= 1;
        self.text.push_str("}\n");
    }

    fn statement(&mut self) {
        let kind = if self.depth > 4 {
            self.pick(6)
        } else {
            self.pick(13)
        };
        match kind {
            0 | 1 => {
                let value = self.value();
                self.line(format!("g_expensive(&t[({value}) & 63]);"));
            }
            2..=4 => {
                let value = self.value();
                let operator = ["=", "+=", "^="][usize::from(self.pick(3))];
                if let Some(place) = self.place() {
                    self.line(format!("{place} {operator} {value};"));
                }
            }
            5 => {
                let jump = match (self.pick(2), self.loops + self.switches) {
                    (1, 1..) => "break",
                    _ => "continue",
                };
                let value = self.value();
                self.line(format!("if (({value}) % 5 == 1) {jump};"));
            }
            6..=8 => self.declare(),
            9 => self.looped(),
            10 => self.cases(),
            _ => {
                let value = self.value();
                self.add(format!("if ({value}) "));
                self.block();
                if self.pick(2) == 1 {
                    self.text.push_str("else ");
                    self.block();
                }
            }
        }
    }
}

fn lane(bytes: &[u8], number: usize) -> String {
    let mut maker = Maker {
        bytes: bytes.iter(),
        text: String::new(),
        scope: vec!["first".to_owned(), "second".to_owned()],
        counters: Vec::new(),
        depth: 0,
        loops: 0,
        switches: 0,
    };
    maker.statements(12);
    format!(
        "static void f{number}(const unsigned *t, unsigned *out, unsigned n)\n{{\n\
         foreach (i, n) {{\nunsigned first = t[i & 63], second = i;\n{}\
         out[i] = first ^ (second * 3);\n}}\n}}\n",
        maker.text
    )
}

fn program(bodies: &[Vec<u8>]) -> String {
    let mut text = "#include <stdio.h>\n#include \"gopt.h\"\n".to_owned();
    let mut calls = String::new();
    for (number, bytes) in bodies.iter().enumerate() {
        text += &lane(bytes, number);
        calls.push_str(&format!(
            "f{number}(t, out, n);\n\
             for (unsigned i = 0; i < n; i++) printf(\"%u \", out[i]);\nputs(\"\");\n"
        ));
    }
    text + "int main(void)\n{\nstatic unsigned t[64], out[50];\n\
        for (unsigned i = 0; i < 64; i++) t[i] = i * 2654435761u >> 7;\n\
        for (unsigned n = 0; n < 50; n += 7) {\n"
        + &calls
        + "}\nreturn 0;\n}\n"
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").map_or(4, |it| it.parse().expect("a number")),
        max_shrink_iters: 40,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_random_lane_means_the_same(
        bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 20..300), 12),
        lanes in prop::sample::select(vec![1_usize, 2, 5, 16, 64, 65]),
    ) {
        let folder = Folder::new("random");
        let text = program(&bodies);
        let output = gopt_c::transform(&text, lanes).expect("nothing in it is refused");
        let compiler = compilers()[0];
        let expected = folder.run(compiler, &["-w"], "original", &text);
        let result = folder.run(compiler, &["-w"], "result", &output.text);
        prop_assert!(expected == result, "{lanes} lanes:\n{text}");
    }
}
