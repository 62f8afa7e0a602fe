//! The announcement of a process's services (rule C14): the endpoints that take sessions of any
//! client, and whether it drains.

use super::codec::{Reader, Writer};
use super::{ControlError, Field};

/// The services of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Serving {
    /// Whether it ends soon, and takes no new sessions and no new requests.
    pub draining: bool,
    /// The number of its endpoints that serve; their indexes are those below it.
    pub endpoints: u16,
}

impl Serving {
    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        let draining = match body.u8(Field::Draining)? {
            0 => false,
            1 => true,
            _ => return Err(ControlError::Value(Field::Draining)),
        };
        let endpoints = body.u16(Field::Endpoints)?;
        Ok(Self {
            draining,
            endpoints,
        })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        out.u8(self.draining.into())?;
        out.u16(self.endpoints)
    }
}
