//! The thread that answers questions about methods. Conversions run code of the services' messages
//! and may take long, so the thread of the server's own endpoint gives the questions to this one,
//! and goes on answering health. It has a large stack, because messages of a fixed layout are moved
//! on it. At most [`WAITING`] questions wait; later ones are refused.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use dunlin_core::{Cx, DeferredRequest, Request};
use dunlin_wire::{ErrorCode, ReqType};

use super::Reflection;

/// Questions that wait for the thread.
const WAITING: usize = 8;

/// Bytes of the stack. The default is 2 MiB, and a message may have 16 MiB.
const STACK: usize = 64 << 20;

/// The endpoint's handle of the thread. After it is dropped, the thread ends with the conversion
/// that it is making; a drop does not wait for that, because it is the program's code.
#[derive(Debug)]
pub(crate) struct Converter {
    questions: SyncSender<Question>,
    answers: Receiver<Answer>,
    /// Wakes the endpoint, once it is there.
    waker: Arc<OnceLock<Waker>>,
}

#[derive(Debug)]
struct Question {
    req_type: ReqType,
    data: Vec<u8>,
    request: DeferredRequest,
}

/// An answer that the endpoint must send.
#[derive(Debug)]
pub(crate) struct Answer {
    bytes: Result<Vec<u8>, ErrorCode>,
    request: DeferredRequest,
}

impl Converter {
    /// Starts the thread.
    pub(crate) fn start(reflection: Reflection) -> io::Result<Self> {
        let (questions, asked) = mpsc::sync_channel(WAITING);
        let (answered, answers) = mpsc::channel();
        let waker = Arc::<OnceLock<Waker>>::default();
        let endpoint = Arc::clone(&waker);
        let run = move || {
            for question in asked {
                if answered.send(reflection.answer_to(question)).is_err() {
                    break;
                }
                if let Some(waker) = endpoint.get() {
                    waker.wake_by_ref();
                }
            }
        };
        let thread = std::thread::Builder::new().name("dunlin-reflect".into());
        thread.stack_size(STACK).spawn(run)?;
        Ok(Self {
            questions,
            answers,
            waker,
        })
    }

    /// Sets the waker of the endpoint, which calls [`Self::next`] when it wakes.
    pub(crate) fn set_waker(&self, waker: Waker) {
        // The endpoint sets it once.
        let _ = self.waker.set(waker);
    }

    /// Gives a question to the thread.
    pub(crate) fn take(&self, request: Request<'_>, cx: &mut Cx<'_>) {
        let question = Question {
            req_type: request.req_type(),
            data: request.data().to_vec(),
            request: request.defer(cx),
        };
        match self.questions.try_send(question) {
            Ok(()) => {}
            Err(TrySendError::Full(it)) => it.request.reject(cx, ErrorCode::OVERLOADED),
            Err(TrySendError::Disconnected(it)) => {
                it.request.reject(cx, ErrorCode::HANDLER_FAILED);
            }
        }
    }

    /// The next answer, if the thread has made one.
    pub(crate) fn next(&self) -> Option<Answer> {
        self.answers.try_recv().ok()
    }
}

impl Reflection {
    fn answer_to(&self, question: Question) -> Answer {
        Answer {
            bytes: self.answer(question.req_type, &question.data),
            request: question.request,
        }
    }
}

impl Answer {
    /// Sends the answer.
    pub(crate) fn send(self, cx: &mut Cx<'_>) {
        match self.bytes {
            Ok(bytes) => self.request.reply_bytes(cx, &bytes),
            Err(code) => self.request.reject(cx, code),
        }
    }
}
