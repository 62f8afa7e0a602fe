//! One RPC after another, each from its call to its completion: the client of `idle`.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use dunlin::{Done, MsgBuf, Open, Rpc, Session, Tag};

use super::ECHO;
use crate::harness::work;

/// How long one answer may take.
const LOST: Duration = Duration::from_secs(5);

/// Bytes of a request and of its response.
const SIZE: usize = 32;

/// The application: the last completion.
pub(crate) type App = Option<Done>;

/// A session with the buffers of one request.
#[derive(Debug)]
pub(crate) struct Exchange {
    session: Session,
    bufs: Option<[MsgBuf; 2]>,
    counter: u64,
}

impl Exchange {
    /// Prepares to call on a session.
    ///
    /// # Errors
    /// There is no memory for message buffers.
    pub(crate) fn new<T: Open>(rpc: &mut Rpc<T, App>, session: Session) -> anyhow::Result<Self> {
        rpc.on_completion(|app, done, _| *app = Some(done));
        let bufs = Some([rpc.buf(SIZE)?, rpc.buf(SIZE)?]);
        Ok(Self {
            session,
            bufs,
            counter: 0,
        })
    }

    /// Makes one RPC.
    ///
    /// # Errors
    /// An answer is wrong or missing.
    pub(crate) fn trip<T: Open>(&mut self, rpc: &mut Rpc<T, App>) -> anyhow::Result<()> {
        let [mut request, response] = self.bufs.take().context("the last RPC failed")?;
        let counter = self.counter;
        self.counter += 1;
        work::fill(request.data_mut(), counter);
        rpc.call(self.session, ECHO, request, response, Tag(counter))?;
        let begin = Instant::now();
        let done = loop {
            rpc.run_once();
            if let Some(done) = rpc.app_mut().take() {
                break done;
            }
            ensure!(begin.elapsed() < LOST, "request {counter} was not answered");
        };
        done.result?;
        let answer = done.response.data();
        let is_right = answer.len() == SIZE && work::is_answer(answer, SIZE, counter);
        ensure!(is_right, "the answer to request {counter} is wrong");
        self.bufs = Some([done.request, done.response]);
        Ok(())
    }
}
