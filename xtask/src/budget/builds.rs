//! The counted programs, and the ways in which they are built.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::callgrind::{Counted, Without};

/// A program and the way to build it, named as its section of `budget.toml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Build {
    /// In the workspace: fat LTO and one codegen unit, like all measured binaries.
    Measured,
    /// Outside the workspace: cargo's default release profile, like a user's program.
    Plain,
    /// Typed calls with metadata, built like `Measured`.
    Typed,
    /// RPCs as futures, built like `Measured`.
    Faces,
    /// Typed RPCs without and with an empty layer around handlers, and over channels, built like
    /// `Measured`.
    Layer,
    /// Gets and sets of the key-value service, built like `Measured`.
    Kv,
    /// Replicated puts, built like `Measured`; the followers have rows of their own.
    Replica,
    /// Gets of the ordered index, built like `Measured`.
    Index,
    /// Numbers of the sequencer, and echoes of the same lengths, built like `Measured`.
    Sequencer,
    /// RPCs over DPDK, built like `Measured`; it counts only the transport, without the driver.
    Dpdk,
    /// Packets of large requests over DPDK, built like `Measured`; it counts the endpoints too, and
    /// not the driver.
    Large,
    /// RPCs over the rings of AF_XDP, built like `Measured`; it counts only the transport; a
    /// program in user space plays the kernel.
    Xdp,
}

/// Names of the functions in which each side works.
const TURNS: [&str; 2] = ["::client_turn", "::server_turn"];

/// Names of the functions in which the transport works for each side, if only its work counts.
const APART: [&str; 2] = ["apart::Client as", "apart::Server as"];

impl Build {
    pub(super) const ALL: [Self; 12] = [
        Self::Measured,
        Self::Plain,
        Self::Typed,
        Self::Faces,
        Self::Layer,
        Self::Kv,
        Self::Replica,
        Self::Index,
        Self::Sequencer,
        Self::Dpdk,
        Self::Large,
        Self::Xdp,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Plain => "plain",
            Self::Typed => "typed",
            Self::Faces => "faces",
            Self::Layer => "layer",
            Self::Kv => "kv",
            Self::Replica => "replica",
            Self::Index => "index",
            Self::Sequencer => "sequencer",
            Self::Dpdk => "dpdk",
            Self::Large => "large",
            Self::Xdp => "xdp",
        }
    }

    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Measured => "the workspace's profile `lto`: fat LTO, x86-64-v3",
            Self::Plain => "a program outside the workspace, cargo's default release profile",
            Self::Typed => "typed calls on the poll API, built like [measured]",
            Self::Faces => "futures at both sides, built like [measured]",
            Self::Layer => "typed futures and channels, with and without layers of tower",
            Self::Kv => "gets and sets of the key-value service, built like [measured]",
            Self::Replica => "puts on three replicas, built like [measured]",
            Self::Index => "gets of the ordered index, built like [measured]",
            Self::Sequencer => "numbers of the sequencer, and echoes, built like [measured]",
            Self::Dpdk => "the transport `dpdk` over net_ring, without the driver",
            Self::Large => "packets of large requests over `dpdk` and net_ring, without the driver",
            Self::Xdp => "the transport `xdp` over its four rings, without the kernel",
        }
    }

    /// Why this program cannot run on this machine; `None` if it can. In runs in which a skipped
    /// test counts as failed, a program that cannot run counts as failed, too.
    pub(super) fn missing(self) -> Option<&'static str> {
        let exists = || {
            let status = Command::new("pkg-config")
                .args(["--exists", "libdpdk"])
                .status();
            status.is_ok_and(|status| status.success())
        };
        let must_run = std::env::var_os("DUNLIN_NO_SKIP").is_some();
        (self.needs_dpdk() && !must_run && !exists())
            .then_some("libdpdk or pkg-config is not installed")
    }

    const fn needs_dpdk(self) -> bool {
        matches!(self, Self::Dpdk | Self::Large)
    }

    /// The functions to count in its profile.
    pub(super) const fn counted(self) -> Counted {
        match self {
            Self::Dpdk | Self::Large => Counted {
                sides: if matches!(self, Self::Dpdk) {
                    APART
                } else {
                    TURNS
                },
                client_alone: false,
                without: Some(Without {
                    callers: "dunlin_dpdk_*",
                    object: "librte_net_ring",
                }),
            },
            Self::Xdp => Counted {
                sides: APART,
                client_alone: false,
                without: None,
            },
            _ => Counted {
                sides: TURNS,
                client_alone: matches!(self, Self::Layer),
                without: None,
            },
        }
    }

    /// The path of the program.
    pub(super) fn program(self, root: &Path) -> anyhow::Result<PathBuf> {
        let target = crate::workspaces::target_folder(root)?;
        Ok(match self.example() {
            Some(example) => target.join(COUNTED).join(example),
            None => target.join("outside/release/dunlin-outside"),
        })
    }

    /// The example that is the program; `None` for the program outside the workspace.
    const fn example(self) -> Option<&'static str> {
        Some(match self {
            Self::Measured => "shm_rpc",
            Self::Typed => "meta_rpc",
            Self::Faces => "async_rpc",
            Self::Layer => "typed_rpc",
            Self::Kv => "kv_rpc",
            Self::Replica => "put_rpc",
            Self::Index => "get_rpc",
            Self::Sequencer => "take_rpc",
            Self::Dpdk => "dpdk_rpc",
            Self::Large => "dpdk_large",
            Self::Xdp => "xdp_rpc",
            Self::Plain => return None,
        })
    }
}

/// The folder of the programs that are built like the measured binaries, in the target folder.
const COUNTED: &str = "lto";

/// Builds these programs. One command builds all that are built like the measured binaries, so each
/// library is compiled once, and both processors are busy until the last program is linked.
pub(super) fn build(root: &Path, builds: &[Build]) -> anyhow::Result<()> {
    let target = crate::workspaces::target_folder(root)?;
    if builds.iter().any(|build| build.needs_dpdk()) {
        build_library(root, &target.join(COUNTED))?;
    }
    let measured = builds.iter().filter(|build| build.example().is_some());
    let features: Vec<_> = measured.map(|build| build.name()).collect();
    if !features.is_empty() {
        // `xtask/counted/Cargo.toml` has a feature of the name of each section.
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--profile=lto", "--package=dunlin-counted"]);
        cargo.args(["--features", &features.join(",")]);
        run(root, &mut cargo)?;
    }
    if builds.contains(&Build::Plain) {
        run(root, &mut outside(&target))?;
    }
    Ok(())
}

/// Runs a command of cargo that builds programs.
fn run(root: &Path, cargo: &mut Command) -> anyhow::Result<()> {
    cargo.args(["--quiet", "--locked"]).current_dir(root);
    let status = cargo.status().context("cannot start cargo")?;
    ensure!(
        status.success(),
        "the programs do not build; if the dependencies of a crate have changed, run `cargo update \
         --workspace --manifest-path xtask/outside/Cargo.toml`"
    );
    Ok(())
}

/// The command that builds the program outside the workspace.
fn outside(target: &Path) -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args([
            "build",
            "--release",
            "--manifest-path=xtask/outside/Cargo.toml",
        ])
        .arg("--target-dir")
        .arg(target.join("outside"))
        // Overrides the flags in `.cargo/config.toml`: a user has neither these nor `RUSTFLAGS`.
        .env("RUSTFLAGS", "")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo
}

/// Builds the library that loads DPDK into the folder of the programs, which find it there.
fn build_library(root: &Path, folder: &Path) -> anyhow::Result<()> {
    let output = Command::new("sh")
        .arg(root.join("crates/dpdk/native/build.sh"))
        .arg(folder)
        .output()
        .context("cannot start sh")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "crates/dpdk/native/build.sh fails; it needs libdpdk-dev and pkg-config:\n{said}"
    );
    Ok(())
}
