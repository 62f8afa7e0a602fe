//! The output for each `foreach`. `lib.rs` calls it once for each function, with the function's
//! plan.
//!
//! A lane consists of the label where it continues, and of its elements of the arrays. All lanes of
//! a `foreach` start at its begin label, where a lane takes the next item. A lane that finds no
//! item leaves the mask, so finished lanes are never visited, and a batch may have any length. At a
//! mark, a lane prefetches, stores the label after the mark, and jumps to the label of the next
//! lane in the mask (G-Opt §3.2, "prefetch, save, and switch").

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::declare::Declarations;
use crate::edit::{Edits, Piece};
use crate::flow::Jump;
use crate::lanes::Plan;
use crate::source::Source;

/// A function with more `foreach` than this has no computed `goto`. A compiler must assume that
/// each computed `goto` leads to every label of the function; clang's time grows with the fourth
/// power of the number of loops (40 loops: 33 s, with `switch` less than 1 s).
const FEW_LOOPS: usize = 8;

/// How a lane continues at its label.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dispatch {
    /// The array holds the addresses of labels.
    Computed,
    /// The array holds numbers, and one `switch` for each `foreach` leads to its own labels only.
    Switched,
}

impl Dispatch {
    fn of(plan: &Plan<'_>) -> Self {
        match plan.names.foreach.len() > FEW_LOOPS {
            true => Self::Switched,
            false => Self::Computed,
        }
    }

    const fn label_type(self) -> &'static str {
        match self {
            Self::Computed => "void *",
            Self::Switched => "unsigned ",
        }
    }

    /// The value of the begin label of this `foreach`.
    fn begin(self, number: usize) -> String {
        match self {
            Self::Computed => format!("&&gopt_begin_{number}"),
            Self::Switched => "0".to_owned(),
        }
    }

    /// The switch from one lane to the next at a mark.
    fn at_mark(self, number: usize, mark: usize) -> String {
        let label = format!("gopt_label_{number}_{mark}");
        match self {
            Self::Computed => format!("GOPT_SWITCH({label}); {label}: ;"),
            Self::Switched => format!(
                "gopt_labels[gopt_lane] = {}; GOPT_NEXT(); goto gopt_switch_{number}; {label}: ;",
                mark + 1
            ),
        }
    }

    /// The jump to the label of the current lane.
    fn jump(self, number: usize) -> String {
        match self {
            Self::Computed => "goto *gopt_labels[gopt_lane];".to_owned(),
            Self::Switched => format!("goto gopt_switch_{number};"),
        }
    }

    /// The `switch` to which [`Self::jump`] leads; empty if that leads to the labels themselves.
    fn table(self, number: usize, marks: impl Iterator<Item = usize>) -> String {
        if self == Self::Computed {
            return String::new();
        }
        let cases = marks.map(|mark| {
            let value = mark + 1;
            format!("case {value}: goto gopt_label_{number}_{mark};\n")
        });
        let cases: String = cases.collect();
        format!(
            "goto gopt_end_{number};\n\
             gopt_switch_{number}: switch (gopt_labels[gopt_lane]) {{\n\
             case 0: goto gopt_begin_{number};\n{cases}default: __builtin_unreachable();\n}}\n"
        )
    }
}

/// Makes the output. Counts the loops and the types of the file, so that each gets a name of its
/// own.
pub(crate) struct Emitter<'a> {
    pub(crate) source: &'a Source<'a>,
    pub(crate) edits: Edits,
    /// Lanes that are in flight at once.
    pub(crate) lanes: usize,
    foreach_count: usize,
    type_count: usize,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(source: &'a Source<'a>, lanes: usize) -> Self {
        Self {
            source,
            edits: Edits::default(),
            lanes,
            foreach_count: 0,
            type_count: 0,
        }
    }

    pub(crate) fn function(&mut self, plan: &Plan<'_>) {
        for lane in 0..plan.names.foreach.len() {
            self.foreach_count += 1;
            self.foreach(plan, lane, self.foreach_count);
        }
    }

    fn foreach(&mut self, plan: &Plan<'_>, lane: usize, number: usize) {
        let foreach = &plan.names.foreach[lane];
        let arrays = &plan.arrays[lane];
        let called = new_names(plan, arrays);
        let mut declarations = Declarations {
            emitter: self,
            plan,
            lane,
            arrays,
            called: &called,
            hoisted: Vec::new(),
        };
        let hoisted = declarations.declare();
        self.rename(plan, lane, &called);
        self.marks(plan, lane, number);
        self.jumps(plan, lane, number);
        let mut pieces = self.prologue(plan, lane, hoisted);
        pieces.extend(self.start(plan, lane, number, &called));
        let header = foreach.statement.start_byte()..foreach.header.end_byte();
        let indent = self.indent(header.start);
        for piece in &mut pieces {
            if let Piece::New(text) = piece {
                *text = text.replace('\n', &indent);
            }
        }
        self.edits.replace(header, pieces);
        let begin = foreach.body.start_byte() + 1;
        let take = match called.get(&foreach.variable) {
            Some(name) => format!(" {name}[gopt_lane] = gopt_next++;"),
            None => {
                let name = &plan.names.variables[foreach.variable].name;
                format!(" const __typeof__(gopt_n) {name} = gopt_next++; (void){name};")
            }
        };
        self.edits.insert(begin, take);
        let end = foreach.body.end_byte();
        let epilogue = self.epilogue(plan, lane, number, &called);
        self.edits.insert(end, epilogue.replace('\n', &indent));
    }

    /// The end of a line, and the indentation of the line at `at`. If line markers number the
    /// lines, added text must not add lines.
    fn indent(&self, at: usize) -> String {
        if self.source.is_preprocessed() {
            return " ".to_owned();
        }
        let text = self.source.text;
        let begin = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let blanks = text[begin..at].chars().take_while(|c| c.is_whitespace());
        let is_crlf = text[..begin].ends_with("\r\n");
        let end = if is_crlf { "\r\n" } else { "\n" };
        end.chars().chain(blanks).collect()
    }

    fn rename(&mut self, plan: &Plan<'_>, lane: usize, called: &HashMap<usize, String>) {
        let body = plan.names.foreach[lane].body.byte_range();
        let declarators = plan.names.declarators.iter();
        let declared: HashSet<usize> = declarators
            .map(|declared| declared.identifier.start_byte())
            .collect();
        for (at, variable) in &plan.names.uses {
            let Some(name) = called.get(variable) else {
                continue;
            };
            if body.contains(at) && !declared.contains(at) {
                let end = at + plan.names.variables[*variable].name.len();
                let renamed = format!("{name}[gopt_lane]");
                self.edits.replace(*at..end, vec![renamed.into()]);
            }
        }
    }

    fn marks(&mut self, plan: &Plan<'_>, lane: usize, number: usize) {
        for (mark, place) in plan.flow.marks.iter().enumerate() {
            if place.lane != lane {
                continue;
            }
            let switch = Dispatch::of(plan).at_mark(number, mark);
            let pieces: Vec<Piece> = vec![
                "{ __builtin_prefetch(".into(),
                place.address.byte_range().into(),
                format!("); {switch} }}").into(),
            ];
            self.edits.replace(place.statement.byte_range(), pieces);
        }
    }

    fn jumps(&mut self, plan: &Plan<'_>, lane: usize, number: usize) {
        for (statement, jump, of) in &plan.flow.jumps {
            if *of != lane {
                continue;
            }
            let mut pieces: Vec<Piece> = Vec::new();
            match (jump, statement.named_child(0)) {
                (Jump::Next, _) => pieces.push(format!("goto gopt_begin_{number};").into()),
                (Jump::Return, Some(value)) => {
                    pieces.push("{ gopt_value = ".into());
                    pieces.push(value.byte_range().into());
                    pieces.push(format!("; gopt_exit = 2; goto gopt_stop_{number}; }}").into());
                }
                (Jump::Break, _) if !plan.returns(lane) => {
                    pieces.push(format!("goto gopt_stop_{number};").into());
                }
                (_, _) => {
                    let exit = if *jump == Jump::Break { 1 } else { 2 };
                    let stop = format!("{{ gopt_exit = {exit}; goto gopt_stop_{number}; }}");
                    pieces.push(stop.into());
                }
            }
            self.edits.replace(statement.byte_range(), pieces);
        }
    }

    /// The state of the lanes.
    fn prologue(&self, plan: &Plan<'_>, lane: usize, hoisted: Vec<Piece>) -> Vec<Piece> {
        let foreach = &plan.names.foreach[lane];
        let lanes = self.lanes;
        let label = Dispatch::of(plan).label_type();
        let count: Piece = foreach.count.byte_range().into();
        let mut pieces: Vec<Piece> = vec![
            format!("{{ /* {lanes} lanes */\n").into(),
            "__typeof__(0 + (".into(),
            count.clone(),
            ")) gopt_n = (".into(),
            count,
            "), gopt_next = 0;\n".into(),
            format!("{label}gopt_labels[{lanes}];\n").into(),
            "unsigned long gopt_lane;\n".into(),
        ];
        pieces.push(match lanes.div_ceil(64) {
            1 => "unsigned long long gopt_mask = 0, gopt_rest;\n".into(),
            words => format!(
                "unsigned long long gopt_mask[{words}] = {{0}}, gopt_rest;\n\
                 unsigned long gopt_word = 0;\n"
            )
            .into(),
        });
        if plan.returns(lane) {
            pieces.push("int gopt_exit = 0;\n".into());
            pieces.extend(return_value(plan));
        }
        pieces.extend(hoisted);
        pieces
    }

    /// Fills the mask with as many lanes as there are items, and starts the first lane.
    fn start(
        &self,
        plan: &Plan<'_>,
        lane: usize,
        number: usize,
        called: &HashMap<usize, String>,
    ) -> Option<Piece> {
        let lanes = self.lanes;
        let is_wide = lanes > 64;
        let first = match called.get(&plan.names.foreach[lane].variable) {
            Some(name) if plan.stops(lane) => format!("{name}[gopt_lane] = 0; "),
            _ => String::new(),
        };
        let add = match is_wide {
            true => "gopt_mask[gopt_lane / 64] |= 1ull << gopt_lane % 64;",
            false => "gopt_mask |= 1ull << gopt_lane;",
        };
        let rest = if is_wide { "gopt_mask[0]" } else { "gopt_mask" };
        let begin = Dispatch::of(plan).begin(number);
        let start = format!(
            "if (!(gopt_next < gopt_n)) goto gopt_end_{number};\n\
             for (gopt_lane = 0; gopt_lane < {lanes} && (__typeof__(gopt_n))gopt_lane < gopt_n; \
             gopt_lane++) {{ {first}gopt_labels[gopt_lane] = {begin}; {add} }}\n\
             gopt_lane = 0; gopt_rest = {rest};\n\
             gopt_begin_{number}: if (!(gopt_next < gopt_n)) goto gopt_leave_{number};\n"
        );
        Some(start.into())
    }

    /// The code that ends a lane without an item, and a loop that stops before its last item.
    fn epilogue(
        &self,
        plan: &Plan<'_>,
        lane: usize,
        number: usize,
        called: &HashMap<usize, String>,
    ) -> String {
        let mut text = format!("\ngoto gopt_begin_{number};\n");
        let is_wide = self.lanes > 64;
        if let (true, Some(index)) = (
            plan.stops(lane),
            called.get(&plan.names.foreach[lane].variable),
        ) {
            let word = if is_wide {
                "gopt_mask[other / 64]"
            } else {
                "gopt_mask"
            };
            let own = if is_wide {
                "gopt_mask[gopt_word]"
            } else {
                "gopt_mask"
            };
            let other = "gopt_other";
            let word = word.replace("other", other);
            text += &format!(
                "gopt_stop_{number}: gopt_n = {index}[gopt_lane];\n\
                 for (unsigned long {other} = 0; {other} < {lanes}; {other}++)\n\
                 if ({index}[{other}] > {index}[gopt_lane]) {word} &= ~(1ull << {other} % 64);\n\
                 gopt_rest &= {own}; goto gopt_begin_{number};\n",
                lanes = self.lanes,
            );
        }
        let dispatch = Dispatch::of(plan);
        let jump = dispatch.jump(number);
        text += &match is_wide {
            false => format!(
                "gopt_leave_{number}: gopt_mask &= ~(1ull << gopt_lane);\n\
                 if (gopt_mask) {{ GOPT_NEXT(); {jump} }}\n"
            ),
            true => format!(
                "gopt_leave_{number}: gopt_mask[gopt_word] &= ~(1ull << gopt_lane % 64);\n\
                 for (gopt_lane = 0; gopt_lane < {words}; gopt_lane++)\n\
                 if (gopt_mask[gopt_lane]) {{ GOPT_NEXT(); {jump} }}\n",
                words = self.lanes.div_ceil(64),
            ),
        };
        let marks = plan.flow.marks.iter().enumerate();
        let marks = marks.filter(|(_, mark)| mark.lane == lane);
        text += &dispatch.table(number, marks.map(|(mark, _)| mark));
        text += &format!("gopt_end_{number}: ;\n");
        if plan.returns(lane) {
            let value = if has_value(plan) { " gopt_value" } else { "" };
            text += &format!("if (gopt_exit == 2) return{value};\n");
        }
        text + "}"
    }

    /// The output, with its macros before everything else.
    pub(crate) fn finish(self) -> String {
        let prelude = prelude(self.lanes);
        let body = self.edits.render(self.source.text);
        match body.strip_prefix('\u{feff}') {
            Some(body) => format!("\u{feff}{prelude}{body}"),
            None => format!("{prelude}{body}"),
        }
    }

    pub(crate) fn new_type(&mut self) -> String {
        self.type_count += 1;
        format!("gopt_type_{}", self.type_count)
    }
}

/// A name for each variable that gets an array; shadowed ones get a number.
fn new_names(plan: &Plan<'_>, arrays: &BTreeSet<usize>) -> HashMap<usize, String> {
    let mut called: HashMap<usize, String> = HashMap::new();
    for variable in arrays {
        let name = &plan.names.variables[*variable].name;
        let mut new = format!("gopt_of_{name}");
        let mut number = 1;
        while called.values().any(|known| *known == new) {
            number += 1;
            new = format!("gopt_of_{name}_{number}");
        }
        called.insert(*variable, new);
    }
    called
}

fn has_value(plan: &Plan<'_>) -> bool {
    let returns = plan.flow.jumps.iter();
    let mut returns = returns.filter(|(_, jump, _)| *jump == Jump::Return);
    returns.any(|(statement, _, _)| statement.named_child_count() > 0)
}

/// A variable of the function's return type.
fn return_value(plan: &Plan<'_>) -> Vec<Piece> {
    if !has_value(plan) {
        return Vec::new();
    }
    let Some(declarator) = plan.function.child_by_field_name("declarator") else {
        return Vec::new();
    };
    let (mut node, mut stars) = (declarator, String::new());
    while node.kind() == "pointer_declarator" {
        stars.push('*');
        let Some(inner) = node.child_by_field_name("declarator") else {
            break;
        };
        node = inner;
    }
    let mut pieces: Vec<Piece> = Vec::new();
    for specifier in crate::names::children(plan.function) {
        let is_type = specifier.end_byte() <= declarator.start_byte()
            && specifier.kind() != "storage_class_specifier"
            && specifier.kind() != "attribute_declaration";
        if is_type {
            let is_type_itself = Some(specifier) == plan.function.child_by_field_name("type");
            // The assigned value cannot be const; a value behind a pointer stays const.
            if is_type_itself || !stars.is_empty() {
                pieces.push(specifier.byte_range().into());
                pieces.push(" ".into());
            }
        }
    }
    pieces.push(format!("{stars}gopt_value;\n").into());
    pieces
}

/// Takes `gopt_lane` to the next lane in the mask.
const NEXT: &str = "\
#define GOPT_NEXT() \\
    (gopt_rest &= gopt_rest - 1, gopt_rest = gopt_rest ? gopt_rest : gopt_mask, \\
     gopt_lane = (unsigned long)__builtin_ctzll(gopt_rest))
";

/// The same as `NEXT`, for a mask of `WORDS` words.
const NEXT_OF_MANY: &str = "\
#define GOPT_NEXT() \\
    do { \\
        gopt_rest &= gopt_rest - 1; \\
        while (!gopt_rest) { \\
            gopt_word = gopt_word + 1 < WORDS ? gopt_word + 1 : 0; \\
            gopt_rest = gopt_mask[gopt_word]; \\
        } \\
        gopt_lane = gopt_word * 64 + (unsigned long)__builtin_ctzll(gopt_rest); \\
    } while (0)
";

const SWITCH: &str = "\
#define GOPT_SWITCH(label) \\
    do { \\
        gopt_labels[gopt_lane] = &&label; \\
        GOPT_NEXT(); \\
        goto *gopt_labels[gopt_lane]; \\
    } while (0)
";

/// gcc believes that a switch may lead to any label of the function. So if one path writes a
/// variable and reads it, gcc warns that another path may read it without having written it.
const QUIET: &str = "\
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored \"-Wmaybe-uninitialized\"
#endif
";

fn prelude(lanes: usize) -> String {
    let next = match lanes.div_ceil(64) {
        1 => NEXT.to_owned(),
        words => NEXT_OF_MANY.replace("WORDS", &words.to_string()),
    };
    format!("/* Made by gopt; edit its input instead. */\n{QUIET}{next}{SWITCH}")
}
