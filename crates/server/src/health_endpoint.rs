//! Health of programs that run their endpoint threads by themselves, without a `Server`.

use std::sync::Arc;
use std::time::Duration;

use dunlin_nexus::{EndpointBuilder, Nexus, Pulse};
use dunlin_transport::auto::Auto;
use dunlin_wire::control::{EndpointIndex, Serving};

use crate::error::ServeError;
use crate::health::Health;
use crate::own::{Answers, OwnEndpoint};
use crate::phase::Phase;
use crate::thread::Vitals;

/// Answers questions about the health of endpoint threads that the program runs by itself. A
/// [`Server`](crate::Server) has such an endpoint already. Dropping this ends the answers.
///
/// ```
/// use std::time::Duration;
/// use dunlin_nexus::{Nexus, Rpc};
/// use dunlin_server::HealthEndpoint;
/// use dunlin_transport::shm::Shm;
///
/// let nexus = Nexus::bind("127.0.0.1:0")?;
/// let rpc: Rpc<Shm, ()> = nexus.endpoint(())?;
/// let (threads, services) = (vec![rpc.pulse()], vec!["Words"]);
/// let builder = nexus.endpoint_builder().index(1);
/// let health = HealthEndpoint::start(&nexus, builder, threads, services, Duration::from_secs(1))?;
/// // While the thread runs `rpc`, `dunlin health` says that it serves.
/// # drop(health);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "dropping it ends the answers"]
pub struct HealthEndpoint {
    phase: Arc<Phase>,
    /// This is dropped after the phase has ended, because the drop waits for the thread of the
    /// endpoint.
    _own: OwnEndpoint,
}

impl HealthEndpoint {
    /// Starts a thread with an endpoint of `builder`, whose index must be the number of the
    /// `threads`, and announces it to clients. The threads have the endpoints with the indices
    /// below, all of which offer `services`. If one of them makes no turn for longer than `stuck`,
    /// the process is not serving.
    ///
    /// # Errors
    /// The thread or its endpoint could not be made.
    pub fn start(
        nexus: &Nexus,
        builder: EndpointBuilder<Auto>,
        threads: Vec<Pulse>,
        services: Vec<&'static str>,
        stuck: Duration,
    ) -> Result<Self, ServeError> {
        let endpoints = u16::try_from(threads.len()).unwrap_or(u16::MAX);
        let vitals = threads.into_iter().map(|pulse| Vitals {
            pulse,
            services: services.clone(),
            #[cfg(feature = "reflect")]
            facts: Vec::new(),
        });
        let phase = Arc::<Phase>::default();
        let shared = Arc::clone(&phase);
        let answers = Answers::about_health(Health::of(vitals.collect(), shared, stuck));
        // Announced before the endpoint exists, so no client that asks for any endpoint gets it.
        nexus.serve(Serving {
            draining: false,
            endpoints,
            health: Some(EndpointIndex(endpoints)),
        });
        let own = OwnEndpoint::start(builder, answers, Arc::clone(&phase))?;
        Ok(Self { phase, _own: own })
    }
}

impl Drop for HealthEndpoint {
    fn drop(&mut self) {
        self.phase.end();
    }
}
