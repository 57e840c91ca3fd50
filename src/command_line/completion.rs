//! Completion in a shell: the script calls the program again for each word, so that names of
//! namespaces and DaemonSets come from the cluster or the recording that the line names, and those of
//! steps from its source.
//!
//! It must not disturb the shell: it prints no errors, asks for nothing, and ends within a second.

mod steps;

use std::ffi::{OsStr, OsString};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, FromArgMatches, Parser};
use clap_complete::env::{CompleteEnv, Shells};
use clap_complete::{ArgValueCompleter, CompletionCandidate};

use crate::connection::{self, Connection};
use crate::flags::GlobalFlags;
use crate::printer::Printer;
use crate::shell::Shell;
use cluster::{Kind, Scope};
use daemonset::model::{DaemonSetKey, NamespaceName};

/// The variable by which the script calls the program.
pub(super) const VARIABLE: &str = "DS_PLAN_COMPLETE";

/// Time for reading names.
const TIMEOUT: Duration = Duration::from_millis(800);

/// Completes the line, if the script of a shell has called; returns whether it has.
pub(crate) fn complete<P: Parser>() -> bool {
    let current_dir = std::path::absolute(".").ok();
    let completed = CompleteEnv::with_factory(|| with_names(super::definition::<P>(), P::command))
        .var(VARIABLE)
        .try_complete(std::env::args_os(), current_dir.as_deref());
    // Errors would be printed into the line that is being typed.
    completed.unwrap_or(true)
}

/// The script that registers the completion of a program in a shell.
///
/// # Errors
/// It cannot be written.
pub(crate) fn script(program: &str, shell: &str) -> std::io::Result<Vec<u8>> {
    let mut script = Vec::new();
    if let Some(shell) = Shells::builtins().completer(shell) {
        shell.write_registration(VARIABLE, program, program, program, &mut script)?;
    }
    // As the script for zsh does: bash would print errors into the line.
    let text = String::from_utf8_lossy(&script);
    let silent = text.replace("-- \"${words[@]}\" \\\n", "-- \"${words[@]}\" 2>/dev/null \\\n");
    Ok(silent.into_bytes())
}

/// Adds the completion of names to the flags and arguments of all commands; `line` is the command
/// line by which flags are found.
fn with_names(command: Command, line: fn() -> Command) -> Command {
    let with = |arg: Arg| match arg.get_id().as_str() {
        "namespace" => arg.add(ArgValueCompleter::new(move |word: &OsStr| namespaces(line, word))),
        "names" | "name" | "daemon_set" => {
            arg.add(ArgValueCompleter::new(move |word: &OsStr| daemon_sets(line, word)))
        }
        "step" => {
            arg.add(ArgValueCompleter::new(move |word: &OsStr| steps::to_approve(line, word)))
        }
        _other => arg,
    };
    command.mut_args(with).mut_subcommands(|command| command.mut_args(with))
}

fn namespaces(line: fn() -> Command, current: &OsStr) -> Vec<CompletionCandidate> {
    let read = |cluster: Cluster| async move {
        match &cluster.connection {
            Connection::Live(cluster) => {
                let names = cluster.names(Kind::Namespace, None).await.unwrap_or_default();
                names.into_iter().map(|(_, name)| name).collect()
            }
            Connection::Recorded(_) => {
                let keys = cluster.daemon_sets(None).await;
                keys.into_iter().map(|key| key.namespace.to_string()).collect()
            }
        }
    };
    beginning_with(current, within_time(line, read))
}

fn daemon_sets(line: fn() -> Command, current: &OsStr) -> Vec<CompletionCandidate> {
    let resource = current.to_string_lossy().split_once('/').map(|(it, _)| format!("{it}/"));
    let resource = resource.filter(|it| it.starts_with("ds/") || it.starts_with("daemonset"));
    let read = |cluster: Cluster| async move {
        let namespace = cluster.global.namespace.clone();
        if resource.is_none() && namespace.is_none() {
            return cluster.daemon_sets(None).await.iter().map(ToString::to_string).collect();
        }
        let namespace = namespace.unwrap_or_else(|| cluster.connection.default_namespace());
        let resource = resource.unwrap_or_default();
        let keys = cluster.daemon_sets(Some(&namespace)).await;
        keys.into_iter().map(|key| format!("{resource}{}", key.name)).collect()
    };
    beginning_with(current, within_time(line, read))
}

/// The names that begin with the word so far, each once.
fn beginning_with(current: &OsStr, mut names: Vec<String>) -> Vec<CompletionCandidate> {
    names.sort();
    names.dedup();
    let begins = |name: &String| name.starts_with(&*current.to_string_lossy());
    names.into_iter().filter(begins).map(CompletionCandidate::new).collect()
}

/// The names that `read` finds in the cluster in time; none otherwise.
fn within_time<R>(
    line: fn() -> Command,
    read: impl FnOnce(Cluster) -> R + Send + 'static,
) -> Vec<String>
where
    R: Future<Output = Vec<String>>,
{
    in_time(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
        runtime.block_on(async { Some(read(Cluster::of(line).await?).await) })
    })
}

/// The names that `find` returns in time; none otherwise. The thread ends with the process.
fn in_time(find: impl FnOnce() -> Option<Vec<String>> + Send + 'static) -> Vec<String> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(find()?).ok());
    receiver.recv_timeout(TIMEOUT).unwrap_or_default()
}

/// The line that is being typed.
fn words() -> Vec<OsString> {
    std::env::args_os().skip_while(|word| word != "--").skip(1).collect()
}

/// The global flags of an unfinished line; those of the connection from variables if it has none.
fn flags(line: Command, words: &[OsString], shell: &Shell) -> Option<GlobalFlags> {
    let matches = line.ignore_errors(true).try_get_matches_from(words).ok()?;
    let matches = matches.subcommand().map_or(&matches, |(_, matches): (_, &ArgMatches)| matches);
    let mut flags = GlobalFlags::from_arg_matches(matches).ok()?;
    let GlobalFlags { kubeconfig, context, snapshot, namespace, .. } = &mut flags;
    let variable = |flag: &str| {
        let names = ["DS_PLAN", "DS_APPLY"].map(|program| format!("{program}_{flag}"));
        names.iter().find_map(|name| shell.variable(name)).map(OsStr::to_owned)
    };
    if kubeconfig.is_none() && context.is_none() && snapshot.is_none() {
        *kubeconfig = variable("KUBECONFIG").map(Into::into);
        *context = variable("CONTEXT").and_then(|name| name.into_string().ok());
        *snapshot = variable("SNAPSHOT").map(Into::into);
    }
    let of_variable = || variable("NAMESPACE").and_then(|name| name.into_string().ok());
    *namespace = namespace.take().or_else(|| of_variable().map(NamespaceName::from));
    // Checking a signature takes longer than a user waits.
    (!flags.signature.is_demanded()).then_some(flags)
}

/// The cluster of the line that is being typed.
struct Cluster {
    global: GlobalFlags,
    shell: Shell,
    connection: Connection,
}

impl Cluster {
    /// Connects as the line and the variables say.
    async fn of(line: fn() -> Command) -> Option<Self> {
        let shell = Shell::of_process(Printer::silent()).ok()?;
        let global = flags(line(), &words(), &shell)?;
        let connection = connection::open_silently(&global, &shell).await.ok()?;
        Some(Self { global, shell, connection })
    }

    /// The DaemonSets of a namespace, or of all; if that is forbidden, of the context's namespace.
    async fn daemon_sets(&self, namespace: Option<&NamespaceName>) -> Vec<DaemonSetKey> {
        match &self.connection {
            Connection::Live(live) => {
                let names = live.names(Kind::DaemonSet, namespace).await;
                let names = match names {
                    Ok(names) => Ok(names),
                    Err(_) => live.names(Kind::DaemonSet, Some(live.default_namespace())).await,
                };
                let names = names.unwrap_or_default().into_iter();
                names.map(|(namespace, name)| DaemonSetKey::new(namespace, name)).collect()
            }
            recorded @ Connection::Recorded(_) => {
                let snapshot = recorded.snapshot(&Scope::All, &self.shell).await;
                let all = snapshot.into_iter().flat_map(|snapshot| snapshot.daemon_sets);
                let keys = all.map(|live| live.key.clone());
                keys.filter(|key| namespace.is_none_or(|it| key.namespace == *it)).collect()
            }
        }
    }
}
