//! The process that gives numbers, and answers the echoes of the baseline.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dunlin::sequencer::{Desk, Files, Keeper, Options, Taking, serve as serve_numbers};
use dunlin::{ReqType, Rpc};

use crate::harness::probe::patience;
use crate::harness::subject::server::listen_to_parent;
use crate::harness::subject::side::Side;
use crate::harness::subject::{Medium, Setting, over};
use harness::process::{Parent, Process, Role};
use harness::seat::Seat;

/// Gives numbers.
pub(super) const ROLE: Role = Role::new("numbers-give", give);

/// An echo: the answer is the first 8 bytes of the request.
pub(super) const ECHO: ReqType = ReqType(0x10);

/// Bytes of an answer: a number.
pub(super) const ANSWER: usize = 8;

/// A process that gives numbers, as its parent sees it.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    process: Process,
}

impl Server {
    /// Starts a server.
    ///
    /// # Errors
    /// The server does not start.
    pub(super) fn start(setting: Setting) -> anyhow::Result<Self> {
        let mut process = Process::spawn(ROLE, Seat::default(), &setting)?;
        let address = process.receive(patience(Duration::ZERO))?;
        Ok(Self { address, process })
    }

    /// Ends the server, and returns its counts.
    ///
    /// # Errors
    /// The server has already ended.
    pub(super) fn stop(&mut self) -> anyhow::Result<Side> {
        self.process.send(&())?;
        self.process.receive(patience(Duration::ZERO))
    }
}

/// A directory that is deleted when the process ends.
pub(super) struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// # Errors
/// The endpoint or the directory cannot be opened.
fn give(parent: &Parent) -> anyhow::Result<()> {
    let setting: Setting = parent.receive()?;
    over!(setting, serve(parent, &setting))
}

fn serve<T: Medium>(parent: &Parent, setting: &Setting) -> anyhow::Result<()> {
    let asked = listen_to_parent();
    let (desk, files, folder) = desk()?;
    let mut rpc: Rpc<T, Desk> = setting.open(desk)?;
    register(&mut rpc);
    let keeper = Keeper::start(files, rpc.waker())?;
    parent.say(&rpc.nexus().address())?;
    keeper.drive(&mut rpc, || asked.load(Ordering::Relaxed));
    let side = Side::read(&mut rpc)?;
    // The parent may end this process as soon as it has the answer.
    drop(folder);
    parent.say(&side)
}

/// Makes the state of a server, and the files in which it reserves numbers.
///
/// # Errors
/// The directory cannot be made.
pub(super) fn desk() -> anyhow::Result<(Desk, Files, Folder)> {
    let name = format!("dunlin-numbers-{}", std::process::id());
    let folder = Folder(std::env::temp_dir().join(name));
    let (options, process) = (Options::DEFAULT, std::process::id());
    let mut files = Files::open(&folder.0)?;
    let claim = dunlin::sequencer::take_directory(&mut files, Taking::Free, &options, process)?;
    Ok((Desk::new(claim, options), files, folder))
}

/// Registers numbers and echoes.
pub(super) fn register<T: Medium>(rpc: &mut Rpc<T, Desk>) {
    serve_numbers(rpc);
    rpc.on(ECHO, |_, request, cx| {
        let data = request.data();
        request.reply(cx, ANSWER, |out| out.copy_from_slice(&data[..ANSWER]));
    });
}
