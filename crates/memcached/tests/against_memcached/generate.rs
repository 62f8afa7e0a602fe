//! Random scripts from a seed. They consist of mostly correct commands on a few keys, so that
//! several commands use the same item.

use std::fmt::Write;

use dunlin_testkit::random::Random;

/// A script that is being written.
struct Writer {
    random: Random,
    prefix: String,
    /// A version that the servers returned recently.
    version: u64,
    out: String,
}

/// A script of this number of commands.
pub(crate) fn script(seed: u64, attempt: u32, version: u64, commands: usize) -> Vec<u8> {
    let mut writer = Writer {
        random: Random::new(seed),
        prefix: format!("s{seed}.{attempt}"),
        version,
        out: String::new(),
    };
    for _ in 0..commands {
        writer.command();
    }
    // Ask for the last version: the next script uses it.
    let prefix = &writer.prefix;
    write!(writer.out, "set {prefix}z 0 0 1\r\nz\r\ngets {prefix}z\r\n").unwrap();
    writer.out.into_bytes()
}

/// The version at the end of a script's answers.
pub(crate) fn last_version(answers: &[u8]) -> Option<u64> {
    let text = String::from_utf8_lossy(answers);
    let line = text.lines().rev().find(|line| line.starts_with("VALUE "))?;
    line.rsplit(' ').next()?.parse().ok()
}

impl Writer {
    fn command(&mut self) {
        match self.random.below(20) {
            0..=3 => self.read(),
            4..=7 => self.write(),
            8 => self.count(),
            9 => self.change(),
            10..=12 => self.meta_get(),
            13..=15 => self.meta_set(),
            16 => self.meta_delete(),
            17..=18 => self.meta_count(),
            _ => self.nonsense(),
        }
    }

    fn key(&mut self) -> String {
        format!("{}{}", self.prefix, self.random.pick(&["a", "b", "c"]))
    }

    /// A key whose value is a number at first; other commands may change that.
    fn counter(&mut self) -> String {
        format!("{}{}", self.prefix, self.random.pick(&["n", "m"]))
    }

    fn value(&mut self) -> String {
        let len = self.random.below(12);
        (0..len)
            .map(|_| char::from(b'a' + u8::try_from(self.random.below(26)).unwrap()))
            .collect()
    }

    fn time(&mut self) -> &'static str {
        self.random.pick(&[
            "0",
            "0",
            "10",
            "100",
            "2592000",
            "-1",
            "2147483647",
            "2592001",
        ])
    }

    fn some_version(&mut self) -> u64 {
        let back = self.random.below(4) as u64;
        let ahead = self.random.below(40) as u64;
        (self.version + ahead).saturating_sub(back)
    }

    fn noreply(&mut self) -> &'static str {
        if self.random.one_in(6) {
            " noreply"
        } else {
            ""
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line);
        self.out.push_str("\r\n");
    }

    fn read(&mut self) {
        let name = self.random.pick(&["get", "gets", "gat", "gats"]);
        let time = if name.starts_with("gat") {
            self.time()
        } else {
            ""
        };
        let mut line = format!("{name} {time}");
        for _ in 0..=self.random.below(3) {
            let key = self.key();
            write!(line, " {key}").unwrap();
        }
        self.line(&line);
    }

    fn write(&mut self) {
        let name = self
            .random
            .pick(&["set", "set", "add", "replace", "append", "prepend", "cas"]);
        let (key, value, time) = (self.key(), self.value(), self.time());
        let flags = self.random.pick(&["0", "1", "4294967295"]);
        let mut line = format!("{name} {key} {flags} {time} {}", value.len());
        if name == "cas" {
            let version = self.some_version();
            write!(line, " {version}").unwrap();
        }
        line.push_str(self.noreply());
        self.line(&line);
        self.line(&value);
    }

    fn count(&mut self) {
        let key = self.counter();
        if self.random.one_in(3) {
            let value = self
                .random
                .pick(&["0", "7", "99", "18446744073709551610", "x"]);
            self.line(&format!("set {key} 0 0 {}", value.len()));
            return self.line(value);
        }
        let name = self.random.pick(&["incr", "decr"]);
        let by = self
            .random
            .pick(&["1", "5", "1000", "18446744073709551615", "x"]);
        let noreply = self.noreply();
        self.line(&format!("{name} {key} {by}{noreply}"));
    }

    fn change(&mut self) {
        let key = self.key();
        let noreply = self.noreply();
        if self.random.one_in(2) {
            return self.line(&format!("delete {key}{noreply}"));
        }
        let time = self.time();
        self.line(&format!("touch {key} {time}{noreply}"));
    }

    /// Flags out of a list, each at most once, in any order.
    fn flags(&mut self, all: &[String]) -> String {
        let mut left: Vec<&String> = all.iter().collect();
        let mut flags = String::new();
        for _ in 0..self.random.below(5) {
            let flag = left.swap_remove(self.random.below(left.len()));
            write!(flags, " {flag}").unwrap();
        }
        flags
    }

    /// A time in the future, because the answer shows how much of it is left.
    fn future(&mut self) -> &'static str {
        self.random.pick(&["0", "10", "30", "100", "2592000"])
    }

    fn meta_get(&mut self) {
        let key = self.key();
        let (vivify, touch, recache) = (self.future(), self.future(), self.future());
        let flags = ["v", "k", "s", "t", "c", "f", "l", "h", "O12", "q", "u"].map(String::from);
        let mut flags = flags.to_vec();
        flags.push(format!("N{vivify}"));
        flags.push(format!("T{touch}"));
        flags.push(format!("R{recache}"));
        let flags = self.flags(&flags);
        self.line(&format!("mg {key}{flags}"));
    }

    fn meta_set(&mut self) {
        let (key, value) = (self.key(), self.value());
        let (version, time) = (self.some_version(), self.future());
        let mode = self.random.pick(&["ME", "MA", "MP", "MR", "MS"]);
        let mut flags = ["k", "c", "q", "I", "F7", "O3", mode]
            .map(String::from)
            .to_vec();
        flags.push(format!("C{version}"));
        flags.push(format!("T{time}"));
        let flags = self.flags(&flags);
        self.line(&format!("ms {key} {}{flags}", value.len()));
        self.line(&value);
    }

    fn meta_delete(&mut self) {
        let key = self.key();
        let (version, time) = (self.some_version(), self.future());
        let mut flags = ["k", "q", "I", "O4"].map(String::from).to_vec();
        flags.push(format!("C{version}"));
        flags.push(format!("T{time}"));
        let flags = self.flags(&flags);
        self.line(&format!("md {key}{flags}"));
    }

    fn meta_count(&mut self) {
        let key = self.counter();
        let (version, touch, vivify) = (self.some_version(), self.future(), self.future());
        let mode = self.random.pick(&["MI", "M+", "MD", "M-", "MQ"]);
        let by = self.random.pick(&["D1", "D100", "Dx"]);
        let mut flags = ["k", "v", "q", "t", "c", "O5", "J42", mode, by]
            .map(String::from)
            .to_vec();
        flags.push(format!("C{version}"));
        flags.push(format!("T{touch}"));
        flags.push(format!("N{vivify}"));
        let flags = self.flags(&flags);
        self.line(&format!("ma {key}{flags}"));
    }

    fn nonsense(&mut self) {
        let key = self.key();
        let line = self.random.pick(&[
            "get",
            "set K 0 0",
            "set K 0 0 x",
            "set K 0 0 -1 noreply",
            "mg",
            "mg K v v",
            "ms K",
            "md K !",
            "ma K Tx",
            "incr K",
            "nothing at all",
            "",
            "gat K",
            "touch K",
            "me none",
            "verbosity 1",
        ]);
        self.line(&line.replace('K', &key));
    }
}
