//! `man`: manual pages, generated from the help texts.

use std::path::PathBuf;

use clap::ValueHint;
use clap::builder::NonEmptyStringValueParser;
use clap_mangen::Man;

use crate::error::Error;
use crate::exit::Exit;
use crate::shell::Shell;

/// Print a manual page, or write all of them into a folder
///
/// For example: `ds-plan man | man -l -`, or `ds-plan man --out ~/.local/share/man/man1`.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Command; default: the program itself
    #[arg(value_name = "COMMAND", value_parser = NonEmptyStringValueParser::new())]
    #[arg(conflicts_with = "out")]
    command: Option<String>,

    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    out: Option<PathBuf>,
}

pub(super) fn run(args: &Args, program: clap::Command, shell: &Shell) -> Result<Exit, Error> {
    let Args { command, out } = args;
    let name = program.get_name().to_owned();
    let pages = pages(program);
    if let Some(folder) = out {
        for (name, page) in pages {
            let path = folder.join(format!("{name}.1"));
            std::fs::write(&path, rendered(page)?)
                .map_err(|source| Error::Page { path, source })?;
        }
        return Ok(Exit::Done);
    }
    let wanted = command.as_ref().map_or_else(|| name.clone(), |it| format!("{name}-{it}"));
    let known = || pages_of_commands(&name, &pages);
    let page = pages.iter().find(|(name, _)| *name == wanted).map(|(_, page)| page.clone());
    let page = page.ok_or_else(|| Error::NoSuchPage {
        command: command.clone().unwrap_or_default(),
        known: known(),
    })?;
    let text = rendered(page)?;
    shell.printer.out(String::from_utf8_lossy(&text)).map_err(Error::Output)?;
    Ok(Exit::Done)
}

/// The name of each page, with its command.
fn pages(mut program: clap::Command) -> Vec<(String, clap::Command)> {
    program.build();
    let commands = program.get_subcommands().filter(|command| command.get_name() != "help");
    let commands = commands.map(|command| {
        let name = format!("{}-{}", program.get_name(), command.get_name());
        (name, command.clone())
    });
    let commands: Vec<_> = commands.collect();
    [(program.get_name().to_owned(), program)].into_iter().chain(commands).collect()
}

fn pages_of_commands(program: &str, pages: &[(String, clap::Command)]) -> Vec<String> {
    let start = format!("{program}-");
    pages.iter().filter_map(|(name, _)| name.strip_prefix(&start)).map(str::to_owned).collect()
}

fn rendered(page: clap::Command) -> Result<Vec<u8>, Error> {
    let mut text = Vec::new();
    Man::new(page).render(&mut text).map_err(Error::Output)?;
    Ok(text)
}
