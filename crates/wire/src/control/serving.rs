//! The announcement of a process's services (rules C14 and C15): the endpoints that take sessions
//! of any client, whether it drains, and the endpoint that answers health.

use super::codec::{Reader, Writer};
use super::{ControlError, EndpointIndex, Field};

/// Flag: the process drains.
const DRAINING: u8 = 1;
/// Flag: the index of the endpoint that answers health follows. Only peers with the feature bit of
/// health receive it.
const HEALTH: u8 = 2;

/// The services of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Serving {
    /// Whether the process ends soon, and takes no new sessions and no new requests, except about
    /// health.
    pub draining: bool,
    /// The number of its endpoints that serve; their indexes are below this number.
    pub endpoints: u16,
    /// The endpoint that answers health, and serves nothing else. `None` if there is none, or if
    /// one of the two sides is too old for it.
    pub health: Option<EndpointIndex>,
}

impl Serving {
    /// The same announcement, for a peer without the feature bit of health.
    #[must_use]
    pub const fn without_health(self) -> Self {
        Self {
            health: None,
            ..self
        }
    }

    pub(super) fn read(body: &mut Reader<'_>) -> Result<Self, ControlError> {
        let flags = body.u8(Field::Draining)?;
        if flags & !(DRAINING | HEALTH) != 0 {
            return Err(ControlError::Value(Field::Draining));
        }
        let endpoints = body.u16(Field::Endpoints)?;
        let health = match flags & HEALTH {
            0 => None,
            _ => Some(EndpointIndex(body.u16(Field::HealthEndpoint)?)),
        };
        let serving = Self {
            draining: flags & DRAINING != 0,
            endpoints,
            health,
        };
        serving.check()?;
        Ok(serving)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        let draining = if self.draining { DRAINING } else { 0 };
        let health = if self.health.is_some() { HEALTH } else { 0 };
        out.u8(draining | health)?;
        out.u16(self.endpoints)?;
        match self.health {
            None => Ok(()),
            Some(index) => out.u16(index.0),
        }
    }

    /// Checks that the endpoint that answers health has an index of its own: not one of a serving
    /// endpoint, and not [`EndpointIndex::ANY`].
    fn check(&self) -> Result<(), ControlError> {
        match self.health {
            Some(index) if index == EndpointIndex::ANY || index.0 < self.endpoints => {
                Err(ControlError::Value(Field::HealthEndpoint))
            }
            _ => Ok(()),
        }
    }
}
