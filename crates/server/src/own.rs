//! The server's own endpoint. Its thread runs no service, so it answers questions about the server
//! even if all other threads are stuck: about its health (rule C15) and, if the program allows it,
//! about its methods (rule C16), which another thread answers for it. Its index follows those of
//! the threads that serve.

use std::sync::{Arc, mpsc};
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Duration;

use dunlin_core::Refuse;
use dunlin_nexus::{EndpointBuilder, Idle, Rpc};
use dunlin_transport::auto::Auto;
#[cfg(feature = "reflect")]
use dunlin_wire::{DESCRIBE, TO_JSON, TO_MESSAGE};
use dunlin_wire::{ErrorCode, HEALTH};

use crate::error::ServeError;
use crate::health::Health;
use crate::phase::Phase;
#[cfg(feature = "reflect")]
use crate::reflection::Converter;

/// Questions are rare, so the thread blocks at once when there is none.
const IDLE: Idle = Idle::Adaptive {
    spin: Duration::ZERO,
};

/// The thread of the endpoint. Dropping this waits for the thread, which ends with the server's
/// last phase.
#[derive(Debug)]
pub(crate) struct OwnEndpoint {
    waker: Waker,
    thread: Option<JoinHandle<()>>,
}

/// The questions that the endpoint answers.
#[derive(Debug)]
pub(crate) struct Answers {
    /// `None`: the program has switched it off.
    pub(crate) health: Option<Health>,
    /// `None`: the program has not switched it on.
    #[cfg(feature = "reflect")]
    pub(crate) reflection: Option<Converter>,
}

impl OwnEndpoint {
    /// Starts the thread, and waits until its endpoint answers.
    pub(crate) fn start(
        builder: EndpointBuilder<Auto>,
        answers: Answers,
        phase: Arc<Phase>,
    ) -> Result<Self, ServeError> {
        let (report, started) = mpsc::sync_channel(1);
        let run = move || match own(builder).build(answers) {
            Ok(mut rpc) => {
                register(&mut rpc);
                let _ = report.send(Ok(rpc.waker()));
                rpc.run_until(|rpc| {
                    send_answers(rpc);
                    phase.has_ended()
                });
            }
            Err(error) => drop(report.send(Err(ServeError::Endpoint(error)))),
        };
        let thread = std::thread::Builder::new().name("dunlin-own".into());
        let thread = thread.spawn(run).map_err(ServeError::Thread)?;
        Ok(Self {
            waker: started.recv().unwrap_or(Err(ServeError::Panicked))?,
            thread: Some(thread),
        })
    }
}

impl Drop for OwnEndpoint {
    fn drop(&mut self) {
        self.waker.wake_by_ref();
        if let Some(thread) = self.thread.take() {
            // Whether the thread has panicked does not matter: it has ended.
            let _ = thread.join();
        }
    }
}

impl Answers {
    /// The answers of a server without reflection.
    pub(crate) const fn about_health(health: Health) -> Self {
        Self {
            health: Some(health),
            #[cfg(feature = "reflect")]
            reflection: None,
        }
    }

    /// Whether there is a question that the endpoint answers.
    pub(crate) const fn are_some(&self) -> bool {
        #[cfg(feature = "reflect")]
        if self.reflection.is_some() {
            return true;
        }
        self.health.is_some()
    }
}

/// Registers the handlers.
fn register(rpc: &mut Rpc<Auto, Answers>) {
    rpc.on(HEALTH, |answers, request, cx| match &answers.health {
        Some(health) => health.answer(request, cx),
        // As if the server did not know the question.
        None => request.refuse(cx, ErrorCode::UNKNOWN_TYPE),
    });
    #[cfg(feature = "reflect")]
    if let Some(converter) = &rpc.app().reflection {
        converter.set_waker(rpc.waker());
        for question in [DESCRIBE, TO_MESSAGE, TO_JSON] {
            rpc.on(question, |answers, request, cx| {
                if let Some(converter) = &answers.reflection {
                    converter.take(request, cx);
                }
            });
        }
    }
}

/// Sends the answers about methods that the other thread has made.
#[cfg(feature = "reflect")]
fn send_answers(rpc: &mut Rpc<Auto, Answers>) {
    while let Some(answer) = rpc.app().reflection.as_ref().and_then(Converter::next) {
        answer.send(&mut rpc.cx());
    }
}

#[cfg(not(feature = "reflect"))]
fn send_answers(_: &mut Rpc<Auto, Answers>) {}

/// Changes the options of the server's endpoints for this one: it blocks at once when it is idle,
/// and takes any UDP port, because an endpoint with a service may have the port of the options.
fn own(builder: EndpointBuilder<Auto>) -> EndpointBuilder<Auto> {
    builder.idle(IDLE).transport(|options| options.udp.port = 0)
}
