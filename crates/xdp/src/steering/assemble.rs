//! An assembler for the few instructions of BPF that the steering program needs (`bpf-isa`, RFC
//! 9669). Jumps name labels, so that no distance is counted by hand.

/// A register.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Register {
    R0,
    R1,
    R2,
    R3,
    R4,
    R5,
    R6,
    /// The frame pointer: the stack lies below it.
    R10 = 10,
}

/// Bytes that a load or store moves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Width {
    Word = 0x00,
    Half = 0x08,
    Byte = 0x10,
    Double = 0x18,
}

/// When a jump is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum If {
    Equal = 0x10,
    Greater = 0x20,
    AnyBit = 0x40,
    NotEqual = 0x50,
}

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Label(usize);

/// Instructions so far.
#[derive(Debug, Default)]
pub(super) struct Assembler {
    code: Vec<u64>,
    /// Jumps whose distance is still missing.
    jumps: Vec<(usize, Label)>,
    labels: Vec<Option<usize>>,
}

impl Assembler {
    /// A label, to be placed later.
    pub(super) fn label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label before the next instruction.
    pub(super) fn place(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// `to = *(from + offset)`.
    pub(super) fn load(&mut self, width: Width, to: Register, from: Register, offset: i16) {
        self.push(0x61 | width as u8, to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = from`.
    pub(super) fn store(&mut self, width: Width, to: Register, offset: i16, from: Register) {
        self.push(0x63 | width as u8, to as u8, from as u8, offset, 0);
    }

    /// `*(to + offset) = value`.
    pub(super) fn store_number(&mut self, width: Width, to: Register, offset: i16, value: i32) {
        self.push(0x62 | width as u8, to as u8, 0, offset, value);
    }

    /// `to = from`.
    pub(super) fn copy(&mut self, to: Register, from: Register) {
        self.push(0xBF, to as u8, from as u8, 0, 0);
    }

    /// `to = value`.
    pub(super) fn set(&mut self, to: Register, value: i32) {
        self.push(0xB7, to as u8, 0, 0, value);
    }

    /// `to += from`.
    pub(super) fn add(&mut self, to: Register, from: Register) {
        self.push(0x0F, to as u8, from as u8, 0, 0);
    }

    /// `to += value`.
    pub(super) fn add_number(&mut self, to: Register, value: i32) {
        self.push(0x07, to as u8, 0, 0, value);
    }

    /// `to &= value`.
    pub(super) fn and(&mut self, to: Register, value: i32) {
        self.push(0x57, to as u8, 0, 0, value);
    }

    /// `to = map`, by its descriptor.
    pub(super) fn set_map(&mut self, to: Register, map: i32) {
        self.push(0x18, to as u8, 1, 0, map);
        self.code.push(0);
    }

    /// Jumps if the comparison `is` of a register with a number holds.
    pub(super) fn jump_if(&mut self, is: If, one: Register, value: i32, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x05 | is as u8, one as u8, 0, 0, value);
    }

    /// Jumps if the comparison `is` of two registers holds.
    pub(super) fn jump_if_both(&mut self, is: If, one: Register, other: Register, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x0D | is as u8, one as u8, other as u8, 0, 0);
    }

    /// Jumps.
    pub(super) fn jump(&mut self, to: Label) {
        self.jumps.push((self.code.len(), to));
        self.push(0x05, 0, 0, 0, 0);
    }

    /// Calls a function of the kernel; its arguments are R1 to R5, its result is R0.
    pub(super) fn call(&mut self, function: i32) {
        self.push(0x85, 0, 0, 0, function);
    }

    /// Returns R0.
    pub(super) fn exit(&mut self) {
        self.push(0x95, 0, 0, 0, 0);
    }

    /// The program.
    ///
    /// # Panics
    /// If a jump names a label that was not placed: a mistake in the program.
    pub(super) fn finish(mut self) -> Vec<u64> {
        for (at, Label(label)) in self.jumps {
            let to = self.labels[label].expect("every label is placed");
            let distance = i64::try_from(to).ok().zip(i64::try_from(at).ok());
            let distance = distance.map(|(to, at)| to - at - 1);
            let distance = distance.and_then(|distance| i16::try_from(distance).ok());
            let distance = distance.expect("a program has fewer than 32 768 instructions");
            let mut bytes = self.code[at].to_ne_bytes();
            bytes[2..4].copy_from_slice(&distance.to_ne_bytes());
            self.code[at] = u64::from_ne_bytes(bytes);
        }
        self.code
    }

    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, value: i32) {
        // Both registers share a byte; which half is whose depends on the machine.
        let registers = if cfg!(target_endian = "little") {
            from << 4 | to
        } else {
            to << 4 | from
        };
        let mut bytes = [0; 8];
        bytes[0] = code;
        bytes[1] = registers;
        bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
        bytes[4..].copy_from_slice(&value.to_ne_bytes());
        self.code.push(u64::from_ne_bytes(bytes));
    }
}
