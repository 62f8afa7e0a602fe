//! A policy for tower's layers that repeat and hedge calls. It decides by the call's error, which
//! says whether a handler ran, and by the call, which says whether it may run twice.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use dunlin::{Answer, ChannelError, Outgoing, Ran};
use tokio::time::{Sleep, sleep};
use tower::{hedge, retry};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Repeats calls that have provably not run, and idempotent calls that may have run. Hedges
/// idempotent calls. No other call is sent twice.
///
/// A channel repeats calls by itself; this policy is for a layer above several channels, or for
/// more attempts. All attempts share the call's deadline; after the deadline, no attempt begins.
/// If all repeats fail, `ran()` of the last error covers all attempts: it is `Unknown` if any of
/// them may have run. With tower's `Hedge`, an error covers only its own attempt: `Hedge` returns
/// the result of the attempt that ends first.
///
/// ```
/// use dunlin::Channel;
/// use dunlin_tokio::Repeat;
/// use tower::retry::Retry;
///
/// fn repeating(channel: &Channel) -> Retry<Repeat, Channel> {
///     Retry::new(Repeat::up_to(5), channel.clone())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Repeat {
    left: u32,
    /// The limit for the next wait.
    next: Duration,
    longest: Duration,
    /// Whether an attempt of this call has run. Tower clones the policy for each call.
    ran: Ran,
}

impl Repeat {
    /// Repeats a call up to this number of times. It waits for a random time before each repeat: at
    /// most 1 ms before the first, then at most twice the last limit, and never more than 100 ms.
    pub const fn up_to(repeats: u32) -> Self {
        Self {
            left: repeats,
            next: Duration::from_millis(1),
            longest: Duration::from_millis(100),
            ran: Ran::No,
        }
    }

    /// Sets the limits for the first wait and for all waits.
    #[must_use]
    pub const fn backoff(mut self, first: Duration, longest: Duration) -> Self {
        (self.next, self.longest) = (first, longest);
        self
    }

    /// Returns the wait before a repeat, or `None` if the call is not repeated. `error` is the
    /// error of the last attempt; this notes in it whether an earlier attempt may have run. It is
    /// `None` for an error of a layer, which does not say whether the call ran.
    fn repeat(&mut self, call: &Outgoing, error: Option<&mut ChannelError>) -> Option<Sleep> {
        self.ran = self.ran.join(match error {
            Some(error) => {
                error.on_earlier(self.ran);
                error.ran()
            }
            None => Ran::Unknown,
        });
        let may = match self.ran {
            Ran::No => true,
            Ran::Unknown => call.is_idempotent(),
            Ran::Yes => false,
        };
        if !may {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        let limit = self.next.min(self.longest);
        self.next = limit.saturating_mul(2);
        let pause = limit.mul_f64(fraction());
        // After the deadline, a repeat could only fail, and its error would hide this one.
        let has_time = call.left().is_none_or(|left| pause < left);
        has_time.then(|| sleep(pause))
    }
}

/// A random number from 0 to 1.
fn fraction() -> f64 {
    // Each new hasher has random keys, so even its hash of nothing is random.
    let random = RandomState::new().hash_one(());
    f64::from(u32::try_from(random >> 32).unwrap_or(u32::MAX)) / f64::from(u32::MAX)
}

impl retry::Policy<Outgoing, Answer, ChannelError> for Repeat {
    type Future = Sleep;

    fn retry(
        &mut self,
        call: &mut Outgoing,
        end: &mut Result<Answer, ChannelError>,
    ) -> Option<Sleep> {
        self.repeat(call, Some(end.as_mut().err()?))
    }

    fn clone_request(&mut self, call: &Outgoing) -> Option<Outgoing> {
        call.duplicate()
    }
}

/// For layers between this policy and the channel. An error of a layer, unlike one of the channel,
/// does not say whether the call ran.
impl retry::Policy<Outgoing, Answer, BoxError> for Repeat {
    type Future = Sleep;

    fn retry(&mut self, call: &mut Outgoing, end: &mut Result<Answer, BoxError>) -> Option<Sleep> {
        self.repeat(call, end.as_mut().err()?.downcast_mut())
    }

    fn clone_request(&mut self, call: &Outgoing) -> Option<Outgoing> {
        call.duplicate()
    }
}

impl hedge::Policy<Outgoing> for Repeat {
    fn clone_request(&self, call: &Outgoing) -> Option<Outgoing> {
        call.duplicate()
    }

    fn can_retry(&self, call: &Outgoing) -> bool {
        call.is_idempotent()
    }
}
