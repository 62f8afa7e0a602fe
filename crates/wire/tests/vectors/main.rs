//! The golden vectors in `crates/wire/vectors/`: text that implementations in any language can use
//! as tests (the README next to them describes its format).
//!
//! Every file is tested in both directions. When it is rendered again, it must equal the committed
//! file: the values encode to these bytes. And the committed bytes must decode to the values or the
//! error next to them.
//!
//! After an intended change, `DUNLIN_BLESS=1 cargo test -p dunlin-wire --test vectors` rewrites the
//! files; without it, the first line that differs fails the test.

mod control;
mod numbers;
mod packets;
mod reflection;
mod text;

use std::path::PathBuf;

use text::Block;

/// One file of golden vectors.
struct File {
    name: &'static str,
    heading: &'static str,
    /// The blocks that the file must contain.
    blocks: fn() -> Vec<Block>,
    /// Renders a block again, only from its input lines.
    reread: fn(&Block) -> Block,
}

const PACKETS: File = File {
    name: "packets.txt",
    heading: "Packets: header, extension and data (rules W1 to W12).",
    blocks: packets::blocks,
    reread: packets::reread,
};

const CONTROL: File = File {
    name: "control.txt",
    heading: "Control messages, each as one whole frame (rules C1 to C7).",
    blocks: control::blocks,
    reread: control::reread,
};

const RESIDENCES: File = File {
    name: "residences.txt",
    heading: "Residences: nanoseconds, their code, and the nanoseconds of the code (rule W4).",
    blocks: numbers::residences,
    reread: numbers::reread_residence,
};

const REQUEST_NUMBERS: File = File {
    name: "request-numbers.txt",
    heading: "Request numbers: order, slot and successor (rules W9 and S1).",
    blocks: numbers::request_numbers,
    reread: numbers::reread_request_number,
};

const REFLECTION: File = File {
    name: "reflection.txt",
    heading: "Questions and answers of reflection: the bytes of requests and responses (rule C16).",
    blocks: reflection::blocks,
    reread: reflection::reread,
};

#[test]
fn packets_match_the_golden_vectors() {
    PACKETS.check();
}

#[test]
fn control_messages_match_the_golden_vectors() {
    CONTROL.check();
}

#[test]
fn residences_match_the_golden_vectors() {
    RESIDENCES.check();
}

#[test]
fn request_numbers_match_the_golden_vectors() {
    REQUEST_NUMBERS.check();
}

#[test]
fn reflection_matches_the_golden_vectors() {
    REFLECTION.check();
}

impl File {
    fn path(&self) -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR"))
            .join("vectors")
            .join(self.name)
    }

    fn committed(&self) -> String {
        let path = self.path();
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    fn check(&self) {
        self.encode_or_bless();
        self.decode();
    }

    fn encode_or_bless(&self) {
        let rendered = text::render(self.heading, &(self.blocks)());
        if std::env::var_os("DUNLIN_BLESS").is_some() {
            std::fs::write(self.path(), &rendered).expect("the vectors can be written");
        }
        let committed = self.committed();
        for (number, (old, new)) in committed.lines().zip(rendered.lines()).enumerate() {
            assert_eq!(old, new, "{} differs in line {}", self.name, number + 1);
        }
        assert_eq!(committed, rendered, "{} has another length", self.name);
    }

    fn decode(&self) {
        let blocks = text::parse(&self.committed());
        assert!(blocks.len() > 5, "{} has vectors", self.name);
        for block in &blocks {
            assert_eq!(&(self.reread)(block), block, "{}", self.name);
        }
    }
}
