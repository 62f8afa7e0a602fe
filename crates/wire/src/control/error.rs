//! Why a control message could not be read or written, and at which field (rule C1).

/// The fields of control messages, as errors name them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Field {
    /// Version of the frame.
    Version,
    /// Type of the message.
    Type,
    /// Range of versions in a hello.
    VersionRange,
    /// Feature bits of a hello.
    Features,
    /// Boot id of a hello.
    BootId,
    /// Incarnation of a hello.
    Incarnation,
    /// Port of a hello.
    Port,
    /// Name of the UNIX socket in a hello.
    UnixName,
    /// Id of an attempt to connect.
    Attempt,
    /// The endpoint that a connect asks for.
    Target,
    /// Identity of an endpoint.
    EndpointUid,
    /// Number of a session.
    Session,
    /// Token of a session.
    Token,
    /// Binary logarithm of a window.
    Window,
    /// Credits of a session.
    Credits,
    /// Data bytes per packet.
    DataSize,
    /// Bytes of the largest message.
    MaxMessage,
    /// First request number.
    FirstReq,
    /// Number of transport offers.
    OfferCount,
    /// Kind of a transport offer.
    OfferKind,
    /// Number of descriptors sent with a transport offer.
    OfferFds,
    /// Bytes of a transport offer.
    OfferBytes,
    /// Code of a refusal.
    Code,
    /// Explanation of a refusal.
    Detail,
    /// Reason of a reset or a goodbye.
    Reason,
    /// Counter of a heartbeat.
    Counter,
    /// Bytes of a challenge.
    Secret,
    /// Place, length or bytes of a part of the counters file.
    Insight,
    /// The nonce by which a process is recognised on a second connection.
    Nonce,
    /// Requests of an inquiry.
    Requests,
    /// In an account, how long an endpoint has been away.
    Away,
    /// Fates of requests in an account.
    Fates,
    /// Whether a process drains.
    Draining,
    /// Number of serving endpoints.
    Endpoints,
    /// Index of the endpoint that answers health.
    HealthEndpoint,
}

impl Field {
    /// The field's name, as the golden vectors and error messages write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Version => "version",
            Self::Type => "type",
            Self::VersionRange => "version range",
            Self::Features => "features",
            Self::BootId => "boot id",
            Self::Incarnation => "incarnation",
            Self::Port => "port",
            Self::UnixName => "unix name",
            Self::Attempt => "attempt",
            Self::Target => "target",
            Self::EndpointUid => "endpoint uid",
            Self::Session => "session",
            Self::Token => "token",
            Self::Window => "window",
            Self::Credits => "credits",
            Self::DataSize => "data size",
            Self::MaxMessage => "max message",
            Self::FirstReq => "first req",
            Self::OfferCount => "offer count",
            Self::OfferKind => "offer kind",
            Self::OfferFds => "offer fds",
            Self::OfferBytes => "offer bytes",
            Self::Code => "code",
            Self::Detail => "detail",
            Self::Reason => "reason",
            Self::Counter => "counter",
            Self::Secret => "secret",
            Self::Insight => "insight",
            Self::Nonce => "nonce",
            Self::Requests => "requests",
            Self::Away => "away",
            Self::Fates => "fates",
            Self::Draining => "draining",
            Self::Endpoints => "endpoints",
            Self::HealthEndpoint => "health endpoint",
        }
    }
}

/// Why bytes are not a control message, or a control message cannot be written as bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ControlError {
    /// The frame's length is out of bounds, or not the number of bytes.
    Length,
    /// The frame has another version.
    Version,
    /// The type of the message is unknown.
    Type,
    /// The frame ends before or within this field.
    Short(Field),
    /// This field has a forbidden value.
    Value(Field),
    /// Bytes follow the last field.
    Trailing,
    /// The buffer to encode into is too small. `decode` never returns this.
    Space,
}

impl core::fmt::Display for ControlError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Self::Length => f.write_str("the control frame has an impossible length"),
            Self::Version => f.write_str("the control frame has another version"),
            Self::Type => f.write_str("the type of the control message is unknown"),
            Self::Short(field) => {
                write!(
                    f,
                    "the control message ends before its field `{}`",
                    field.name()
                )
            }
            Self::Value(field) => {
                write!(
                    f,
                    "the control message has a bad value in its field `{}`",
                    field.name()
                )
            }
            Self::Trailing => f.write_str("bytes follow the last field of the control message"),
            Self::Space => f.write_str("the buffer is too small for the control message"),
        }
    }
}

impl core::error::Error for ControlError {}
