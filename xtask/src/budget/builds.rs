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
    /// RPCs over the rings of AF_XDP, built like `Measured`; it counts the transport alone, without
    /// the kernel, which a program in user space plays.
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

    /// Builds the program; returns its path, and a folder for its profiles.
    pub(super) fn program(self, root: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
        let target = crate::workspaces::target_folder(root)?;
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--locked"])
            .current_dir(root);
        let program = match self.example() {
            Some(example) => example.build(&mut cargo, &target),
            None => build_outside(&mut cargo, &target),
        };
        if self.needs_dpdk() {
            build_library(root, &target.join("lto/examples"))?;
        }
        let status = cargo.status().context("cannot start cargo")?;
        ensure!(
            status.success(),
            "the program of the section [{}] does not build; if the dependencies of a crate have \
             changed, run `cargo update --workspace --manifest-path xtask/outside/Cargo.toml`",
            self.name()
        );
        Ok((program, target.join("budget")))
    }

    /// The example that is the program; `None` for the program outside the workspace.
    const fn example(self) -> Option<Example> {
        let (package, name, features) = match self {
            Self::Measured => ("dunlin-transport", "shm_rpc", ""),
            Self::Typed => ("dunlin-local", "meta_rpc", ""),
            Self::Faces => ("dunlin-local", "async_rpc", ""),
            Self::Layer => ("dunlin", "typed_rpc", ""),
            Self::Kv => ("dunlin-kv", "kv_rpc", ""),
            Self::Replica => ("dunlin-replica", "put_rpc", ""),
            Self::Index => ("dunlin-index", "get_rpc", ""),
            Self::Sequencer => ("dunlin-sequencer", "take_rpc", ""),
            Self::Dpdk => ("dunlin-dpdk", "dpdk_rpc", "with-dpdk"),
            Self::Large => ("dunlin-dpdk", "dpdk_large", "with-dpdk"),
            Self::Xdp => ("dunlin-xdp", "xdp_rpc", "wire"),
            Self::Plain => return None,
        };
        Some(Example {
            package,
            name,
            features,
        })
    }
}

/// An example of a package.
struct Example {
    package: &'static str,
    name: &'static str,
    features: &'static str,
}

impl Example {
    /// The command that builds it like the measured binaries; returns the path of the program.
    fn build(self, cargo: &mut Command, target: &Path) -> PathBuf {
        cargo.args(["--profile=lto", "--package", self.package]);
        cargo.args(["--features", self.features, "--example", self.name]);
        target.join("lto/examples").join(self.name)
    }
}

/// The command that builds the program outside the workspace; returns the program's path.
fn build_outside(cargo: &mut Command, target: &Path) -> PathBuf {
    let target = target.join("outside");
    cargo
        .args(["--release", "--manifest-path=xtask/outside/Cargo.toml"])
        .arg("--target-dir")
        .arg(&target)
        // Overrides the flags in `.cargo/config.toml`: a user has neither these nor `RUSTFLAGS`.
        .env("RUSTFLAGS", "")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    target.join("release/dunlin-outside")
}

/// Builds the library that loads DPDK into the folder of the program, which finds it there.
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
