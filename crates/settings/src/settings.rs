//! The options that are set, in layers, and the errors of setting one. This file calls the other
//! parts of this crate.

use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Problem, SettingsError, Source};
use crate::setting::{Setting, Unit};
use crate::value::Value;
use crate::{file, kubernetes, nearest, table};

/// The variable that names the file.
const CONFIG: &str = "DUNLIN_CONFIG";

/// The prefix of the variables that set options.
const PREFIX: &str = "DUNLIN_";

/// Variables with that prefix that are not options: for the name of the file, for the name of a
/// library (`dunlin_dpdk::library`), and for this project's tests.
const OTHER_VARIABLES: [&str; 10] = [
    CONFIG,
    "DUNLIN_DPDK_LIBRARY",
    "DUNLIN_NO_SKIP",
    "DUNLIN_BLESS",
    "DUNLIN_KILLS",
    "DUNLIN_DRAINS",
    "DUNLIN_RESTARTS",
    "DUNLIN_FAIR",
    "DUNLIN_HISTORIES",
    "DUNLIN_ALL_SEEDS",
];

/// Options that are set, with their sources.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// At most one for each row of the table, the one with the highest priority.
    pub(crate) set: Vec<Set>,
    warnings: Vec<String>,
}

/// An option that is set.
#[derive(Clone, Debug)]
pub(crate) struct Set {
    pub(crate) setting: &'static Setting,
    pub(crate) value: Value,
    pub(crate) source: Source,
}

/// An option with its value.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The option's row in the table.
    pub setting: &'static Setting,
    /// The value, in the form in which a file may have it.
    pub value: String,
    /// The default. An option that follows another one has the other one's default.
    pub default: String,
    /// The source of the value.
    pub source: Source,
}

impl Settings {
    /// Loads the file that `DUNLIN_CONFIG` names, if it is set, and then the variables `DUNLIN_*`.
    ///
    /// # Errors
    /// All mistakes in the file and in the variables.
    pub fn load() -> Result<Self, SettingsError> {
        match std::env::var_os(CONFIG).filter(|path| !path.is_empty()) {
            None => Self::default().with_environment().map(Self::warned),
            Some(path) => Self::load_from(path),
        }
    }

    /// Loads this file, and then the variables `DUNLIN_*`, except `DUNLIN_CONFIG`.
    ///
    /// # Errors
    /// All mistakes in the file and in the variables.
    pub fn load_from(path: impl AsRef<Path>) -> Result<Self, SettingsError> {
        let loaded = Self::default().with_file(path)?.with_environment();
        loaded.map(Self::warned)
    }

    /// Adds a file. Its values have priority over earlier layers.
    ///
    /// # Errors
    /// If the file cannot be read, is not TOML, sets an unknown option, or gives one a wrong value.
    pub fn with_file(self, path: impl AsRef<Path>) -> Result<Self, SettingsError> {
        let name = path.as_ref().display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => self.with_toml(&name, &text),
            Err(why) => {
                let source = Source::Program(name.into());
                let what = format!("cannot read the configuration file: {why}");
                Err(SettingsError::one(source, what))
            }
        }
    }

    /// Adds a text in the form of a file; messages call it `name`.
    ///
    /// # Errors
    /// If the text is not TOML, sets an unknown option, or gives one a wrong value.
    pub fn with_toml(mut self, name: &str, text: &str) -> Result<Self, SettingsError> {
        let mut problems = Vec::new();
        for entry in file::read(&Arc::from(name), text)? {
            let file::KeyValue {
                key,
                key_at,
                value_at,
                value,
            } = entry;
            let taken = match find(&key) {
                None => Err(problem(key_at, unknown(&key))),
                Some(setting) => match value {
                    Some(text) => self.take(setting, &text, value_at),
                    None => Err(problem(value_at, not_one(setting))),
                },
            };
            problems.extend(taken.err());
        }
        self.unless(problems)
    }

    /// Adds the variables `DUNLIN_*` of this process.
    ///
    /// # Errors
    /// A variable names no option, or has a value that the option cannot have.
    pub fn with_environment(self) -> Result<Self, SettingsError> {
        self.with_variables(std::env::vars_os())?.checked()
    }

    /// Adds variables; those whose names do not begin with `DUNLIN_` are ignored. The variables
    /// that Kubernetes sets for a service named `dunlin` or `dunlin-…` are ignored with one
    /// warning.
    ///
    /// # Errors
    /// A variable names no option, or has a value that the option cannot have.
    pub fn with_variables(
        mut self,
        variables: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, SettingsError> {
        let mut problems = Vec::new();
        let mut passed_over: Vec<String> = Vec::new();
        for (name, value) in variables {
            let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
            if !name.starts_with(PREFIX) || OTHER_VARIABLES.contains(&&*name) {
                continue;
            }
            if kubernetes::is_of_service(&name, &value) {
                passed_over.push(name.into_owned());
                continue;
            }
            let source = Source::Variable(name.clone().into_owned());
            let taken = match table::all().find(|setting| setting.variable() == name) {
                Some(setting) => self.take(setting, &value, source),
                None => Err(problem(source, unknown_variable(&name))),
            };
            problems.extend(taken.err());
        }
        self.warnings.extend(kubernetes::warning(passed_over));
        self.unless(problems)
    }

    /// Sets one option from within the program. The value has priority over earlier layers.
    ///
    /// # Errors
    /// There is no such option, or it cannot have this value.
    pub fn with(self, name: &str, value: &str) -> Result<Self, SettingsError> {
        self.with_from("the program", name, value)
    }

    /// Like [`Self::with`], but messages and [`Self::entries`] call the place `origin`, for example
    /// a command's flag.
    ///
    /// # Errors
    /// There is no such option, or it cannot have this value.
    pub fn with_from(
        mut self,
        origin: &str,
        name: &str,
        value: &str,
    ) -> Result<Self, SettingsError> {
        let source = Source::Program(origin.into());
        let taken = match find(name) {
            Some(setting) => self.take(setting, value, source),
            None => Err(problem(source, unknown(name))),
        };
        self.unless(taken.err().into_iter().collect())
    }

    /// Warnings about the sources, one line each. [`Self::load`] and [`Self::load_from`] have
    /// written them to standard error.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Every option with its value, in the order of the table.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        table::all().map(|setting| self.entry(setting))
    }

    /// One option; `None` if none has this name.
    pub fn get(&self, name: &str) -> Option<Entry> {
        find(name).map(|setting| self.entry(setting))
    }

    /// Compares the options that are set with each other.
    ///
    /// [`Self::load`] and [`Self::load_from`] have checked the options that they loaded; a program
    /// that then calls [`Self::with`] may check again. The builders refuse impossible options in
    /// any case.
    ///
    /// # Errors
    /// The contradictions, with the sources of the values.
    pub fn check(&self) -> Result<(), SettingsError> {
        let pairs = table::NOT_MORE_THAN.into_iter();
        let mut problems: Vec<Problem> = pairs.filter_map(|pair| self.compare(pair)).collect();
        problems.extend(self.check_endpoint());
        problems.extend(self.check_hedge());
        if problems.is_empty() {
            return Ok(());
        }
        Err(SettingsError { problems })
    }

    fn warned(self) -> Self {
        for warning in &self.warnings {
            eprintln!("{warning}");
        }
        self
    }

    fn checked(self) -> Result<Self, SettingsError> {
        self.check()?;
        Ok(self)
    }

    fn unless(self, problems: Vec<Problem>) -> Result<Self, SettingsError> {
        if problems.is_empty() {
            return Ok(self);
        }
        Err(SettingsError { problems })
    }

    fn take(
        &mut self,
        setting: &'static Setting,
        text: &str,
        source: Source,
    ) -> Result<(), Problem> {
        let Some(value) = setting.parse(text) else {
            return Err(problem(source, wrong(setting, text)));
        };
        self.set.retain(|set| set.setting.name != setting.name);
        self.set.push(Set {
            setting,
            value,
            source,
        });
        Ok(())
    }

    fn entry(&self, setting: &'static Setting) -> Entry {
        let default = setting.default_value();
        let default = setting.show(&default);
        let (value, source) = match self.find(setting.name) {
            Some(set) => (setting.show(&set.value), set.source.clone()),
            None => self.followed(setting, &default),
        };
        Entry {
            setting,
            value,
            default,
            source,
        }
    }

    /// The value, and its source, of an option that is not set.
    fn followed(&self, setting: &Setting, default: &str) -> (String, Source) {
        let Some(set) = setting.follows.and_then(|name| self.find(name)) else {
            return (default.to_owned(), Source::Default);
        };
        let value = match &set.value {
            // UDP binds the host of an address with a port.
            Value::Text(listen) if setting.unit == Unit::Ip => host(listen).to_owned(),
            value => setting.show(value),
        };
        (value, set.source.clone())
    }

    pub(crate) fn find(&self, name: &str) -> Option<&Set> {
        self.set.iter().find(|set| set.setting.name == name)
    }

    /// The contradiction in a pair of [`table::NOT_MORE_THAN`], if there is one.
    fn compare(&self, (less, more): (&str, &str)) -> Option<Problem> {
        let [less, more] = [less, more].map(|name| find(name).expect("pairs have rows"));
        let number = |setting: &'static Setting| match self.find(setting.name) {
            Some(set) => set.value.clone(),
            None => setting.default_value(),
        };
        let (Value::Number(small), Value::Number(large)) = (number(less), number(more)) else {
            return None;
        };
        (small > large).then(|| {
            let what = format!(
                "{} is more than {}; lower the first or raise the second",
                self.place(less),
                self.place(more)
            );
            let set = self.find(less.name).or(self.find(more.name));
            problem(set.map_or(Source::Default, |set| set.source.clone()), what)
        })
    }

    /// The contradiction between hedges, which are second attempts, and a limit of one attempt.
    fn check_hedge(&self) -> Option<Problem> {
        let hedge = self.find("channel.hedge")?;
        let attempts = self.find("channel.attempts")?;
        let hedges = matches!(hedge.value, Value::Number(_));
        (hedges && attempts.value == Value::Number(1)).then(|| {
            let what = format!(
                "{} needs a second attempt, but {}; raise the second to 2 or more, or set the \
                 first to none",
                self.place(hedge.setting),
                self.place(attempts.setting)
            );
            problem(hedge.source.clone(), what)
        })
    }

    /// An option with its value and place, as part of a sentence.
    pub(crate) fn place(&self, setting: &'static Setting) -> String {
        let entry = self.entry(setting);
        format!("`{}` = {} ({})", setting.name, entry.value, entry.source)
    }
}

fn problem(source: Source, what: String) -> Problem {
    Problem { source, what }
}

fn find(name: &str) -> Option<&'static Setting> {
    table::all().find(|setting| setting.name == name)
}

/// The host of a host and a port.
fn host(listen: &str) -> &str {
    let host = listen.rsplit_once(':').map_or(listen, |(host, _)| host);
    host.trim_matches(['[', ']'])
}

/// True if names of options begin with this key and a dot.
pub(crate) fn is_group(name: &str) -> bool {
    let within = |setting: &Setting| {
        let rest = setting.name.strip_prefix(name);
        rest.is_some_and(|rest| rest.starts_with('.'))
    };
    table::all().any(within)
}

/// The message for a key that no option has. The key may be close to a name, to a name without its
/// group, or to a group.
fn unknown(key: &str) -> String {
    let groups = table::GROUPS.into_iter().filter_map(|group| group.first());
    let groups = groups.filter_map(|setting| setting.name.split_once('.'));
    let whole = table::all().map(|setting| (setting.name, setting.name));
    let bare =
        table::all().filter_map(|setting| Some((setting.name.rsplit_once('.')?.1, setting.name)));
    let names = whole
        .chain(bare)
        .chain(groups.map(|(group, _)| (group, group)));
    let key_is = |(name, _): &(&str, &str)| nearest::distance(&key.to_lowercase(), name);
    let near = names.min_by_key(key_is).map(|(_, shown)| shown);
    format!(
        "there is no option `{key}`; the nearest is `{}`",
        near.unwrap_or_default()
    )
}

fn unknown_variable(name: &str) -> String {
    let variables: Vec<String> = table::all().map(Setting::variable).collect();
    let names = variables.iter().map(String::as_str).chain([CONFIG]);
    let near = nearest::nearest(name, names).unwrap_or_default();
    format!("no option has this variable; the nearest is {near}")
}

fn wrong(setting: &Setting, text: &str) -> String {
    if let Some(fault) = setting.fault(text) {
        return format!("`{}` cannot be `{text}`: {fault}", setting.name);
    }
    let expected = setting.expected();
    let start = format!("`{}` cannot be `{text}`; expected {expected}", setting.name);
    // If the text begins with a digit, no word is suggested.
    let word = setting.nearest_word(text).map(str::to_owned);
    let word = word.filter(|_| text.starts_with(|c: char| c.is_alphabetic()));
    match word.or_else(|| setting.nearest_number(text)) {
        Some(near) => format!("{start}; the nearest is `{near}`"),
        None => start,
    }
}

fn not_one(setting: &Setting) -> String {
    format!(
        "`{}` is one value; expected {}",
        setting.name,
        setting.expected()
    )
}

#[cfg(test)]
mod tests;
