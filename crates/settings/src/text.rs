//! Values as people write them: `5 ms`, `64 MiB`, `25 Gbit/s`, `on`, or a plain number in the unit
//! of the option.
//!
//! Invariant: [`Setting::parse`] reads the output of [`Setting::show`] as the same value.
//! Numbers are exact: a fraction that the field cannot hold is refused, not rounded. Called by
//! `settings.rs`.

use std::fmt::Write;
use std::net::IpAddr;

use dunlin_transport::networks::Networks;

use crate::setting::{HOUR, MS, NANOS, S, Setting, Shape, US, Unit};
use crate::value::Value;

/// Names of times in nanoseconds; if a time has several names, the one to show comes first.
const TIMES: [(&str, u64); 8] = [
    ("h", HOUR),
    ("min", 60 * S),
    ("s", S),
    ("ms", MS),
    ("us", US),
    ("µs", US),
    ("μs", US),
    ("ns", 1),
];

const SIZES: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("B", 1),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
];

const RATES: [(&str, u64); 7] = [
    ("Tbit/s", 125_000_000_000),
    ("Gbit/s", 125_000_000),
    ("Mbit/s", 125_000),
    ("GB/s", 1_000_000_000),
    ("MB/s", 1_000_000),
    ("KB/s", 1_000),
    ("B/s", 1),
];

const ON: [&str; 4] = ["on", "true", "yes", "1"];
const OFF: [&str; 4] = ["off", "false", "no", "0"];

impl Setting {
    /// Reads a value; `None` if the option cannot have it.
    pub(super) fn parse(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        if let Some(word) = self.word(text) {
            return Some(Value::Word(word));
        }
        match self.unit {
            Unit::Switch => switch(text).map(Value::Switch),
            Unit::Word => None,
            Unit::Ip => {
                let ip: IpAddr = text.parse().ok()?;
                // A row without words is for an address to which peers send, so it must be the
                // address of a host, and not an unspecified one.
                let fits = self.words.is_empty() || !ip.is_unspecified();
                fits.then_some(Value::Ip(ip))
            }
            Unit::Address => is_address(text).then(|| Value::Text(text.to_owned())),
            Unit::Device => fault_of_device(text)
                .is_none()
                .then(|| Value::Text(text.to_owned())),
            Unit::Remote => crate::remote::fault(text)
                .is_none()
                .then(|| Value::Text(text.to_owned())),
            Unit::Interface => is_interface(text).then(|| Value::Text(text.to_owned())),
            Unit::Path => text.starts_with('/').then(|| Value::Text(text.to_owned())),
            Unit::Networks => {
                // A file may write an array.
                let list = text
                    .strip_prefix('[')
                    .and_then(|text| text.strip_suffix(']'));
                let networks: Networks = list.unwrap_or(text).parse().ok()?;
                (!networks.is_empty()).then(|| Value::Text(networks.to_string()))
            }
            Unit::Count | Unit::Time { .. } | Unit::Bytes | Unit::Rate => {
                let number = self.number(text)?;
                self.numbers.has(number).then_some(Value::Number(number))
            }
        }
    }

    /// The value as a user would write it.
    pub(super) fn show(&self, value: &Value) -> String {
        match value {
            Value::Switch(true) => "on".to_owned(),
            Value::Switch(false) => "off".to_owned(),
            Value::Number(number) => self.show_number(*number),
            Value::Word(word) => (*word).to_owned(),
            Value::Ip(ip) => ip.to_string(),
            Value::Text(text) => text.clone(),
            Value::Unset => self.words.first().copied().unwrap_or_default().to_owned(),
        }
    }

    /// The values that the option can have, as words that fit after "expected".
    pub fn range(&self) -> String {
        let mut text = match self.unit {
            Unit::Switch => "on or off".to_owned(),
            Unit::Word => String::new(),
            Unit::Ip => "an IP address".to_owned(),
            Unit::Address => "HOST:PORT".to_owned(),
            Unit::Interface => "an interface's name".to_owned(),
            Unit::Path => "a path from / on".to_owned(),
            Unit::Device => "a device and its address".to_owned(),
            Unit::Remote => "xdp[:INTERFACE[:QUEUE]]; dpdk[:DEVICE;ip=ADDRESS/BITS]".to_owned(),
            Unit::Networks => "networks, such as 10.1.0.0/16, 2001:db8::/32".to_owned(),
            _ => {
                let [least, most] = [self.numbers.least, self.numbers.most];
                format!("{} to {}", self.show_number(least), self.show_number(most))
            }
        };
        match self.numbers.shape {
            Shape::Any => {}
            Shape::PowerOfTwo => text += ", a power of two",
            Shape::MultipleOf(step) => {
                let _ = write!(text, ", a multiple of {step}");
            }
        }
        if let Some((last, words)) = self.words.split_last() {
            let lead = if text.is_empty() { "" } else { "; or " };
            let all = match words {
                [] => (*last).to_owned(),
                words => format!("{} or {last}", words.join(", ")),
            };
            text += lead;
            text += &all;
        }
        text
    }

    /// The range, and an example of the form of a value.
    pub(super) fn expected(&self) -> String {
        let range = self.range();
        match self.unit {
            Unit::Time { .. } | Unit::Bytes | Unit::Rate => {
                let (unit, example) = (self.unit(), self.example());
                format!("{range}; write `{example}`, or a plain number of {unit}")
            }
            _ => range,
        }
    }

    /// Why a text is refused, if there is more to say than the range.
    pub(super) fn fault(&self, text: &str) -> Option<String> {
        match self.unit {
            Unit::Device => fault_of_device(text.trim()),
            Unit::Remote => crate::remote::fault(text.trim()),
            _ => None,
        }
    }

    /// The word of the row that is nearest to the text, if the row has any.
    pub(super) fn nearest_word(&self, text: &str) -> Option<&'static str> {
        crate::nearest::nearest(text, self.words.iter().copied())
    }

    /// The allowed value nearest to a number in the text, in the form that is shown; `None` if the
    /// text is not a number in a unit of this option.
    pub(super) fn nearest_number(&self, text: &str) -> Option<String> {
        if matches!(
            self.unit,
            Unit::Switch
                | Unit::Word
                | Unit::Ip
                | Unit::Address
                | Unit::Interface
                | Unit::Path
                | Unit::Device
                | Unit::Remote
                | Unit::Networks
        ) {
            return None;
        }
        let (is_negative, text) = match text.trim().strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text.trim()),
        };
        let (amount, divisor) = self.amount(text)?;
        let whole = amount / divisor + u128::from(amount % divisor > divisor / 2);
        let number = if is_negative { 0 } else { whole };
        let number = u64::try_from(number).unwrap_or(u64::MAX);
        Some(self.show_number(self.numbers.nearest(number)))
    }

    fn word(&self, text: &str) -> Option<&'static str> {
        let same = |word: &str| word.eq_ignore_ascii_case(text);
        let found = self.words.iter().copied().find(|word| same(word));
        // A file may write `true` or `false` for an option whose words include on and off.
        found.or_else(|| {
            let on = if switch(text)? { "on" } else { "off" };
            self.words.iter().copied().find(|word| *word == on)
        })
    }

    fn number(&self, text: &str) -> Option<u64> {
        let (amount, divisor) = self.amount(text)?;
        amount
            .is_multiple_of(divisor)
            .then(|| u64::try_from(amount / divisor).ok())?
    }

    /// A number with its unit, as a fraction of the field's unit.
    fn amount(&self, text: &str) -> Option<(u128, u128)> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_');
        let (digits, name) = text.split_at(end.unwrap_or(text.len()));
        let name = name.trim();
        let plain = match self.unit {
            Unit::Time { plain, .. } => plain,
            _ => 1,
        };
        let unit = match name {
            "" => plain,
            name => self.scale().iter().find(|(known, _)| *known == name)?.1,
        };
        scaled(digits, unit, self.grain())
    }

    fn show_number(&self, number: u64) -> String {
        let Some(amount) = number.checked_mul(self.grain()) else {
            return number.to_string();
        };
        let fits = |(_, unit): &&(&str, u64)| amount != 0 && amount.is_multiple_of(*unit);
        match self.scale().iter().find(fits) {
            Some((name, unit)) => format!("{} {name}", amount / unit),
            // Zero, and a number without a unit, are shown as plain numbers.
            None => number.to_string(),
        }
    }

    /// Names of units, the largest first.
    const fn scale(&self) -> &'static [(&'static str, u64)] {
        match self.unit {
            Unit::Time { .. } => &TIMES,
            Unit::Bytes => &SIZES,
            Unit::Rate => &RATES,
            _ => &[],
        }
    }

    /// The size of one unit of the field.
    const fn grain(&self) -> u64 {
        match self.unit {
            Unit::Time { field, .. } => field,
            _ => 1,
        }
    }

    fn example(&self) -> String {
        let middle = match self.unit {
            NANOS => "500 ns",
            Unit::Time { .. } => "5 ms",
            Unit::Bytes => "64 KiB",
            _ => "25 Gbit/s",
        };
        let fits = self.parse(middle).is_some();
        if fits {
            middle.to_owned()
        } else {
            self.show_number(self.numbers.most)
        }
    }
}

/// The value of `digits`, which may have a fraction, times `unit`, in units of `grain`. Returns a
/// numerator and a denominator; `None` if `digits` is not a number.
fn scaled(digits: &str, unit: u64, grain: u64) -> Option<(u128, u128)> {
    let digits: String = digits.chars().filter(|c| *c != '_').collect();
    let (whole, fraction) = digits.split_once('.').unwrap_or((&digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let parts = 10_u128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let number: u128 = format!("{whole}{fraction}").parse().ok()?;
    let amount = number.checked_mul(unit.into())?;
    let divisor = parts.checked_mul(grain.into())?;
    Some((amount, divisor))
}

fn switch(text: &str) -> Option<bool> {
    let is_in = |words: [&str; 4]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    match (is_in(ON), is_in(OFF)) {
        (true, _) => Some(true),
        (_, true) => Some(false),
        _ => None,
    }
}

/// True if the kernel permits an interface of this name.
pub(super) fn is_interface(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'/' && byte != b':';
    (1..16).contains(&text.len()) && text.bytes().all(is_plain)
}

/// Why a text does not name a device of DPDK.
#[cfg(feature = "dpdk")]
pub(super) fn fault_of_device(text: &str) -> Option<String> {
    text.parse::<dunlin_dpdk::Site>().err()
}

/// Without the transport, any text is a device.
#[cfg(not(feature = "dpdk"))]
pub(super) fn fault_of_device(text: &str) -> Option<String> {
    text.is_empty().then(|| "it is empty".to_owned())
}

/// True if this is a host and a port. Only the use of the address shows whether the host exists.
fn is_address(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else {
        return false;
    };
    let bare = host.starts_with('[') && host.ends_with(']');
    let is_host = !host.is_empty() && (bare || !host.contains(':'));
    is_host && !host.contains(char::is_whitespace) && port.parse::<u16>().is_ok()
}
