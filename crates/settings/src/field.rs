//! A field of an option struct, as the table sees it: a [`Value`] can be read from it and written
//! to it.
//!
//! Invariant: a value that fits its row's range and words can be written; any other is refused and
//! changes nothing. Only `settings.rs` calls this.

use std::net::IpAddr;
use std::time::Duration;

use dunlin_core::{Check, Nanos, Scheme};
use dunlin_nexus::{Idle, InsightTcp};
use dunlin_transport::networks::Networks;
use dunlin_transport::udp::Ecn;
use dunlin_wire::ReqNum;

use crate::options::{KvMode, PickRule, XdpMode};
use crate::value::Value;

/// The value does not fit the field, so the table's row is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Misfit;

/// A field that can be set.
pub(super) trait Field {
    fn read(&self) -> Value;

    /// # Errors
    /// If the value does not fit.
    fn write(&mut self, value: &Value) -> Result<(), Misfit>;
}

/// Numbers that are written as they are.
macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Field for $number {
            fn read(&self) -> Value {
                // A `usize` has at most 64 bits.
                Value::Number(u64::try_from(*self).unwrap_or(u64::MAX))
            }

            fn write(&mut self, value: &Value) -> Result<(), Misfit> {
                *self = value.number()?.try_into().map_err(|_| Misfit)?;
                Ok(())
            }
        }
    )*};
}

numbers!(u8, u16, u32, u64, usize);

/// Types whose values are words; each value with its word in files.
macro_rules! words {
    ($($kind:ident { $($variant:ident = $word:literal),* })*) => {$(
        impl Field for $kind {
            fn read(&self) -> Value {
                Value::Word(match self {
                    $(Self::$variant => $word,)*
                })
            }

            fn write(&mut self, value: &Value) -> Result<(), Misfit> {
                *self = match value.word()? {
                    $($word => Self::$variant,)*
                    _ => return Err(Misfit),
                };
                Ok(())
            }
        }
    )*};
}

words! {
    Check { Never = "never", Sweep = "sweep", Event = "event" }
    InsightTcp { Off = "off", Counters = "counters" }
    Ecn { Auto = "auto", On = "on", Off = "off" }
    XdpMode { Generic = "generic", Native = "native" }
    KvMode { Cache = "cache", Store = "store" }
    PickRule { RoundRobin = "round_robin", LeastOfTwo = "least_of_two", Hash = "hash" }
}

/// The first word of the row stands for `None`.
macro_rules! optional_numbers {
    ($($number:ty),*) => {$(
        impl Field for Option<$number> {
            fn read(&self) -> Value {
                self.as_ref().map_or(Value::Unset, Field::read)
            }

            fn write(&mut self, value: &Value) -> Result<(), Misfit> {
                *self = match value {
                    Value::Word(_) => None,
                    _ => Some(value.number()?.try_into().map_err(|_| Misfit)?),
                };
                Ok(())
            }
        }
    )*};
}

optional_numbers!(u16, u32);

impl Field for bool {
    fn read(&self) -> Value {
        Value::Switch(*self)
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        let Value::Switch(on) = value else {
            return Err(Misfit);
        };
        *self = *on;
        Ok(())
    }
}

impl Field for String {
    fn read(&self) -> Value {
        Value::Text(self.clone())
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        let Value::Text(text) = value else {
            return Err(Misfit);
        };
        self.clone_from(text);
        Ok(())
    }
}

impl Field for Option<String> {
    fn read(&self) -> Value {
        self.clone().map_or(Value::Unset, Value::Text)
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        *self = match value {
            Value::Unset | Value::Word(_) => None,
            Value::Text(text) => Some(text.clone()),
            _ => return Err(Misfit),
        };
        Ok(())
    }
}

impl Field for Nanos {
    fn read(&self) -> Value {
        Value::Number(self.0)
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        *self = Self(value.number()?);
        Ok(())
    }
}

impl Field for Duration {
    fn read(&self) -> Value {
        Value::Number(Nanos::from(*self).0)
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        *self = Self::from_nanos(value.number()?);
        Ok(())
    }
}

impl Field for Option<Duration> {
    fn read(&self) -> Value {
        self.map_or(Value::Unset, |span| span.read())
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        *self = match value {
            Value::Word(_) => None,
            _ => Some(Duration::from_nanos(value.number()?)),
        };
        Ok(())
    }
}

impl Field for ReqNum {
    fn read(&self) -> Value {
        Value::Number(self.0.into())
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        self.0.write(value)
    }
}

impl Field for IpAddr {
    fn read(&self) -> Value {
        Value::Ip(*self)
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        let Value::Ip(ip) = value else {
            return Err(Misfit);
        };
        *self = *ip;
        Ok(())
    }
}

impl Field for Option<IpAddr> {
    fn read(&self) -> Value {
        self.map_or(Value::Unset, Value::Ip)
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        *self = match value {
            Value::Word(_) => None,
            Value::Ip(ip) => Some(*ip),
            _ => return Err(Misfit),
        };
        Ok(())
    }
}

impl Field for Networks {
    fn read(&self) -> Value {
        match self.is_empty() {
            true => Value::Unset,
            false => Value::Text(self.to_string()),
        }
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        *self = match value {
            Value::Word(_) => Self::default(),
            Value::Text(text) => text.parse().map_err(|_| Misfit)?,
            _ => return Err(Misfit),
        };
        Ok(())
    }
}

impl Field for Option<Scheme> {
    fn read(&self) -> Value {
        self.map_or(Value::Unset, |scheme| Value::Word(scheme.name()))
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        // If the word names no scheme, it is the row's first word, which stands for `None`.
        *self = value.word()?.parse().ok();
        Ok(())
    }
}

impl Field for Idle {
    fn read(&self) -> Value {
        match self {
            Self::Spin => Value::Word("spin"),
            Self::Adaptive { spin } => spin.read(),
        }
    }

    fn write(&mut self, value: &Value) -> Result<(), Misfit> {
        *self = match value {
            Value::Word(_) => Self::Spin,
            _ => Self::Adaptive {
                spin: Duration::from_nanos(value.number()?),
            },
        };
        Ok(())
    }
}

impl Value {
    fn number(&self) -> Result<u64, Misfit> {
        match self {
            Self::Number(number) => Ok(*number),
            _ => Err(Misfit),
        }
    }

    fn word(&self) -> Result<&'static str, Misfit> {
        match self {
            Self::Word(word) => Ok(word),
            _ => Err(Misfit),
        }
    }
}
