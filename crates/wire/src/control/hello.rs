//! Hello: the identity of each end of a connection (rules C2, C3 and C8).

use super::codec::{Reader, Writer};
use super::{BootId, ControlError, Features, Field, Incarnation};

/// The most bytes of the name of a UNIX socket: the room in `sockaddr_un` on Linux.
pub const MAX_UNIX_NAME: u8 = 108;

/// A process's identity, its first message on every connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hello<'a> {
    /// Lowest protocol version that the process speaks; at least 1.
    pub min_version: u8,
    /// Highest protocol version that the process speaks.
    pub max_version: u8,
    /// Its optional abilities.
    pub features: Features,
    /// Identifies the host on which the process runs; it changes when the host restarts.
    pub boot_id: BootId,
    /// The process itself, by a random number drawn at each start.
    pub incarnation: Incarnation,
    /// The TCP port on which the process's nexus listens; 0 if it does not listen.
    pub port: u16,
    /// Its UNIX socket for processes on the same host; empty if it has none. A name that begins
    /// with NUL lies in the abstract namespace.
    pub unix_name: &'a str,
}

impl<'a> Hello<'a> {
    /// The highest version that both processes speak, if there is one (rule C2).
    pub fn common_version(&self, other: &Hello<'_>) -> Option<u8> {
        let highest = self.max_version.min(other.max_version);
        (highest >= self.min_version.max(other.min_version)).then_some(highest)
    }

    pub(super) fn read(body: &mut Reader<'a>) -> Result<Self, ControlError> {
        let hello = Self {
            min_version: body.u8(Field::VersionRange)?,
            max_version: body.u8(Field::VersionRange)?,
            features: Features(body.u32(Field::Features)?),
            boot_id: BootId(body.array(Field::BootId)?),
            incarnation: Incarnation(body.u64(Field::Incarnation)?),
            port: body.u16(Field::Port)?,
            unix_name: body.str(MAX_UNIX_NAME, Field::UnixName)?,
        };
        hello.check()?;
        Ok(hello)
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) -> Result<(), ControlError> {
        self.check()?;
        out.u8(self.min_version)?;
        out.u8(self.max_version)?;
        out.u32(self.features.0)?;
        out.bytes(&self.boot_id.0)?;
        out.u64(self.incarnation.0)?;
        out.u16(self.port)?;
        out.str(self.unix_name, MAX_UNIX_NAME, Field::UnixName)
    }

    fn check(&self) -> Result<(), ControlError> {
        if self.min_version == 0 || self.min_version > self.max_version {
            return Err(ControlError::Value(Field::VersionRange));
        }
        Ok(())
    }
}
