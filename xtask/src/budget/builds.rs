//! The two ways in which the counted program is built.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

/// A way to build, named as its section of `budget.toml`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(super) enum Build {
    /// In the workspace: fat LTO and one codegen unit, like all measured binaries.
    Measured,
    /// Outside the workspace: cargo's default release profile, like a user's program.
    Plain,
}

impl Build {
    pub(super) const ALL: [Self; 2] = [Self::Measured, Self::Plain];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Measured => "measured",
            Self::Plain => "plain",
        }
    }

    pub(super) const fn about(self) -> &'static str {
        match self {
            Self::Measured => "the workspace's profile `lto`: fat LTO, x86-64-v3",
            Self::Plain => "a program outside the workspace, cargo's default release profile",
        }
    }

    /// Builds the program; returns its path, and a folder for its profiles.
    pub(super) fn program(self, root: &Path) -> anyhow::Result<(PathBuf, PathBuf)> {
        let target = crate::workspaces::target_folder(root)?;
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["build", "--quiet", "--locked"])
            .current_dir(root);
        let program = match self {
            Self::Measured => {
                cargo.args([
                    "--profile=lto",
                    "--package=dunlin-transport",
                    "--example=shm_rpc",
                ]);
                target.join("lto/examples/shm_rpc")
            }
            Self::Plain => {
                let target = target.join("outside");
                cargo
                    .args(["--release", "--manifest-path=xtask/outside/Cargo.toml"])
                    .arg("--target-dir")
                    .arg(&target)
                    // Overrides the flags in `.cargo/config.toml`: a user has neither these nor
                    // `RUSTFLAGS`.
                    .env("RUSTFLAGS", "")
                    .env_remove("CARGO_ENCODED_RUSTFLAGS");
                target.join("release/dunlin-outside")
            }
        };
        let status = cargo.status().context("cannot start cargo")?;
        ensure!(
            status.success(),
            "the program of the section [{}] does not build; if the dependencies of a crate have \
             changed, run `cargo update --workspace --manifest-path xtask/outside/Cargo.toml`",
            self.name()
        );
        Ok((program, target.join("budget")))
    }
}
