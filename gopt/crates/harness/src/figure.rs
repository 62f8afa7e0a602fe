//! Figures for people: each with a unit of a fitting size and only the digits that matter.

/// A value with three significant digits and its unit.
pub fn figure(value: f64, unit: &str) -> String {
    if unit == "count" {
        return format!("{value}");
    }
    let (scaled, unit) = scaled(value, unit);
    let decimals = match scaled.abs() {
        size if size >= 100.0 => 0,
        size if size >= 10.0 => 1,
        _ => 2,
    };
    joined(&format!("{scaled:.decimals$}"), unit)
}

/// A round value, as on an axis: with as many digits as it needs, at most three.
pub fn short(value: f64, unit: &str) -> String {
    let (scaled, unit) = match unit {
        "B" if value < 1024.0 || value % 1024.0 == 0.0 => binary(value),
        unit => scaled(value, unit),
    };
    let size = scaled.abs();
    let decimals: usize = match size {
        _ if size >= 100.0 || size == 0.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 1.0 => 2,
        _ if size >= 0.01 => 3,
        _ => 6,
    };
    if unit == "share" {
        return share(value);
    }
    let digits = format!("{scaled:.decimals$}");
    let digits = match digits.contains('.') {
        true => digits.trim_end_matches('0').trim_end_matches('.'),
        false => &digits,
    };
    joined(digits, unit)
}

fn joined(digits: &str, unit: &str) -> String {
    match unit {
        "" => digits.to_owned(),
        unit => format!("{digits} {unit}"),
    }
}

fn scaled(value: f64, unit: &str) -> (f64, &str) {
    let size = value.abs();
    match unit {
        "us" => scaled_time(value * 1e3, "µs"),
        "ns" => scaled_time(value, "ns"),
        "B" if size >= 1e4 => (value / 1e3, "kB"),
        "1/s" if size >= 1e6 => (value / 1e6, "M/s"),
        "1/s" if size >= 1e3 => (value / 1e3, "k/s"),
        "1/s" => (value, "/s"),
        "count" => (value, ""),
        unit => (value, unit),
    }
}

/// Scales nanoseconds; 0 keeps the unit `zero`.
fn scaled_time(ns: f64, zero: &'static str) -> (f64, &'static str) {
    match ns.abs() {
        0.0 => (0.0, zero),
        size if size >= 1e9 => (ns / 1e9, "s"),
        size if size >= 1e6 => (ns / 1e6, "ms"),
        size if size >= 1e3 => (ns / 1e3, "µs"),
        _ => (ns, "ns"),
    }
}

/// A small part of a whole, as a power of ten if it is one.
fn share(value: f64) -> String {
    let exponent = value.log10().round();
    if value <= 0.0 || (value.log10() - exponent).abs() > 1e-9 {
        return format!("{value}");
    }
    let digits = format!("{exponent}");
    let raised = digits.chars().map(|digit| match digit {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '0' | '4'..='9' => {
            char::from_u32(u32::from('⁰') + u32::from(digit) - u32::from('0')).unwrap_or(digit)
        }
        other => other,
    });
    format!("10{}", raised.collect::<String>())
}

/// Scales bytes by powers of 1024, as usual for the sizes of messages.
fn binary(bytes: f64) -> (f64, &'static str) {
    let names = ["B", "KiB", "MiB", "GiB"];
    let mut left = bytes;
    for name in &names[..3] {
        if left < 1024.0 {
            return (left, name);
        }
        left /= 1024.0;
    }
    (left, names[3])
}

#[cfg(test)]
mod tests;
