//! `ds-plan schema`: the JSON schemas of `-o json`, generated from the Rust types.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::error::Error;
use crate::exit::Exit;
use crate::shell::Shell;
use render::{self, Document};

/// Print the JSON schema of a document that -o json prints
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Document
    #[arg(value_name = "DOCUMENT", default_value = Document::Plan.name(), value_parser = document())]
    document: Document,
}

fn document() -> impl TypedValueParser<Value = Document> {
    PossibleValuesParser::new(Document::ALL.map(Document::name)).map(|name| {
        let named = Document::ALL.into_iter().find(|document| document.name() == name);
        named.unwrap_or(Document::Plan)
    })
}

pub(super) fn run(args: &Args, shell: &Shell) -> Result<Exit, Error> {
    shell.printer.out(render::schema(args.document)?).map_err(Error::Output)?;
    Ok(Exit::Done)
}
