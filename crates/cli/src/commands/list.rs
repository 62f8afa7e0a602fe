//! `dunlin list`: the services of a server with their methods and types, as the server describes
//! them.

use std::fmt::Write;
use std::time::Duration;

use anyhow::Context;
use dunlin::Settings;
use dunlin::settings::Configurable;
use serde::Deserialize;

use crate::commands::echo::{TransportArgs, over, span};
use crate::commands::reflect::{open, refuse};
use crate::say::print;

const EXAMPLES: &str = "\
Examples:
  dunlin list 127.0.0.1:31850              services, methods and their types
  dunlin list --json HOST:31850            the same as JSON, for machines
  dunlin list --json HOST:31850 | jq -r '.services[].methods[]?.name'

A `Server` describes its services if its builder has `.reflect(true)`, and a service its methods if
its trait has `#[service(reflect)]`. `dunlin call` calls them.

Exit codes: 0, the services are listed; 2, wrong usage; 3, the server cannot be reached in time; 5,
it does not describe its services.";

/// The arguments of `dunlin list`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Args {
    /// The address of the server; the usual port is 31850
    #[arg(value_name = "HOST[:PORT]")]
    address: String,
    /// Longest time to wait for the answer
    #[arg(short, long, value_name = "TIME", default_value = "5", value_parser = span)]
    timeout: Duration,
    #[command(flatten)]
    options: TransportArgs,
    /// One JSON object, on the standard output
    #[arg(long)]
    json: bool,
}

/// The description of a server.
#[derive(Deserialize)]
struct Description {
    services: Vec<Service>,
}

#[derive(Deserialize)]
struct Service {
    name: String,
    /// `None`: the service has no reflection.
    methods: Option<Vec<Method>>,
    #[serde(default)]
    types: Vec<Type>,
}

#[derive(Deserialize)]
struct Method {
    name: String,
    number: u16,
    codec: String,
    idempotent: bool,
    one_way: bool,
    request: String,
    response: Option<String>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Type {
    name: String,
    fields: Option<Vec<Field>>,
    #[serde(default)]
    variants: Vec<Variant>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    r#type: String,
}

#[derive(Deserialize)]
struct Variant {
    name: String,
    r#type: Option<String>,
    fields: Option<Vec<Field>>,
}

/// Asks the server, and prints its description.
///
/// # Errors
/// [`Exit`](crate::misuse::Exit) with the exit code if there is none;
/// [`Misuse`](crate::misuse::Misuse) if the usage is wrong.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let settings = args.options.settings()?;
    over!(args.options.transport, show(args, &settings))
}

fn show<T: Configurable>(args: &Args, settings: &Settings) -> anyhow::Result<()> {
    let mut server = open::<T>(settings, &args.address, args.timeout)?;
    let description = server.describe().map_err(refuse)?;
    if args.json {
        return print(&format!("{description}\n"));
    }
    let description: Description = serde_json::from_str(&description)
        .context("the server's description has another form; it may be newer")?;
    print(&description.shown())
}

impl Description {
    fn shown(&self) -> String {
        let services: Vec<_> = self.services.iter().map(Service::shown).collect();
        match &services[..] {
            [] => "the server has no service with a name\n".to_owned(),
            services => services.join("\n"),
        }
    }
}

impl Service {
    fn shown(&self) -> String {
        let mut text = format!("{}\n", self.name);
        let Some(methods) = &self.methods else {
            return text + "  its trait lacks the option `reflect`, so only its name is known\n";
        };
        let rows: Vec<_> = methods.iter().map(Method::columns).collect();
        let width = |column: fn(&[String; 3]) -> &String| {
            let widths = rows.iter().map(|row| column(row).chars().count());
            widths.max().unwrap_or_default()
        };
        let (first, second) = (width(|row| &row[0]), width(|row| &row[1]));
        for [signature, facts, marks] in &rows {
            let line = format!("  {signature:<first$}  {facts:<second$}  {marks}");
            text += line.trim_end();
            text.push('\n');
        }
        for it in &self.types {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  type {}", it.shown());
        }
        text
    }
}

impl Method {
    /// The signature, number and codec, and the other facts.
    fn columns(&self) -> [String; 3] {
        let Self { name, request, .. } = self;
        let returned = match (&self.response, &self.error) {
            (Some(value), Some(error)) => format!(" -> Result<{value}, {error}>"),
            (Some(value), None) => format!(" -> {value}"),
            (None, _) => String::new(),
        };
        let marks = [(self.idempotent, "idempotent"), (self.one_way, "no answer")];
        let marks = marks
            .into_iter()
            .filter_map(|(is_so, mark)| is_so.then_some(mark));
        [
            format!("{name}({request}){returned}"),
            format!("{} {}", self.number, self.codec),
            marks.collect::<Vec<_>>().join(", "),
        ]
    }
}

impl Type {
    fn shown(&self) -> String {
        let name = &self.name;
        if let Some(all) = &self.fields {
            return format!("{name} {}", fields(all));
        }
        let variants = self
            .variants
            .iter()
            .map(|it| match (&it.r#type, &it.fields) {
                (Some(kind), _) => format!("{} {kind}", it.name),
                (None, Some(all)) => format!("{} {}", it.name, fields(all)),
                (None, None) => it.name.clone(),
            });
        format!("{name} = {}", variants.collect::<Vec<_>>().join(" | "))
    }
}

fn fields(all: &[Field]) -> String {
    let all = all.iter().map(|it| format!("{}: {}", it.name, it.r#type));
    format!("{{ {} }}", all.collect::<Vec<_>>().join(", "))
}
