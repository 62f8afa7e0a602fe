//! Options of Dunlin for the commands that open endpoints: a file, variables, and flags, in rising
//! priority. Wrong ones end the command with the exit code of wrong usage (`main.rs`).

use std::path::PathBuf;

use dunlin::Settings;
use dunlin::settings::SettingsError;

/// Options of Dunlin on the command line.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OptionArgs {
    /// Configuration file (TOML), in place of the file that DUNLIN_CONFIG names
    #[arg(long, value_name = "FILE", visible_alias = "config")]
    file: Option<PathBuf>,
    /// Sets an option, over file and variables; can be repeated; `dunlin config` lists all
    #[arg(long, value_name = "OPTION=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

impl OptionArgs {
    /// Loads the file, then variables, then `--set`. The caller checks the settings after it has
    /// added its own flags.
    ///
    /// # Errors
    /// The faults in the first source that has any.
    pub(crate) fn load(&self) -> Result<Settings, SettingsError> {
        let mut settings = match &self.file {
            Some(path) => Settings::load_from(path)?,
            None => Settings::load()?,
        };
        for (name, value) in &self.set {
            settings = settings.with_from("--set", name, value)?;
        }
        Ok(settings)
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let (name, value) = pair.ok_or("write it as option=value")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}
