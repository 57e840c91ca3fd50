//! The flags that several commands share; their doc comments are the help texts.
//!
//! Names and meanings are kubectl's where kubectl has them. Not here: reading the input that the
//! flags name (`input`), and flags of a single command (that command's file).

pub(super) mod heading;
pub(super) mod name;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, ValueEnum, ValueHint};
use jiff::SignedDuration;

use super::annotations::Annotations;
use super::error::Error;
use super::signature::SignatureFlags;
use daemonset::model::{LabelSelector, ManagedBy, NamespaceName, Node};
use name::{GivenName, NAME};
use planner::plan::{ShownValues, zones};
use render::{CommentId, MarkdownOptions};
use source::ReferenceName;

/// Flags that every command takes, before or after its name.
#[derive(Args, Clone, Debug)]
pub(super) struct GlobalFlags {
    /// Kubeconfig file; default: $KUBECONFIG, then ~/.kube/config, then the pod's service account
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::CLUSTER, conflicts_with = "snapshot")]
    pub(super) kubeconfig: Option<PathBuf>,

    /// Context in the kubeconfig; default: its current context
    #[arg(long, global = true, value_name = "NAME")]
    #[arg(help_heading = heading::CLUSTER, conflicts_with = "snapshot")]
    pub(super) context: Option<String>,

    /// Read a recorded cluster instead of a live one
    ///
    /// The file is what `ds-plan snapshot` writes, or `kubectl get
    /// nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases -A -o json
    /// --show-managed-fields`: JSON or YAML, plain or gzip. `-` is standard input. No network call
    /// is made.
    #[arg(long, global = true, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::CLUSTER)]
    pub(super) snapshot: Option<PathBuf>,

    #[command(flatten)]
    pub(super) signature: SignatureFlags,

    /// Impersonate this user; a service account is `system:serviceaccount:NAMESPACE:NAME`
    #[arg(id = "as", long = "as", global = true, value_name = "USER")]
    #[arg(help_heading = heading::CLUSTER, conflicts_with = "snapshot")]
    #[arg(value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(super) as_user: Option<String>,

    /// Impersonate this group, too; repeatable
    #[arg(long = "as-group", global = true, value_name = "GROUP", requires = "as")]
    #[arg(help_heading = heading::CLUSTER)]
    pub(super) as_groups: Vec<String>,

    /// Time to wait for the answer to one request: 30s, 2m; 0 is no limit; default: 10s, and 1m
    /// for a page of a list
    ///
    /// Requests that keep a lock have their own limits, which are shorter than the lock lasts.
    #[arg(long, global = true, value_name = "TIME", value_parser = request_timeout)]
    #[arg(help_heading = heading::CLUSTER, conflicts_with = "snapshot")]
    pub(super) request_timeout: Option<Duration>,

    /// Number of pages of lists to read from the server at a time; default: 4
    #[arg(long, global = true, value_name = "NUMBER")]
    #[arg(help_heading = heading::CLUSTER, conflicts_with = "snapshot")]
    pub(super) concurrency: Option<NonZeroUsize>,

    /// Namespace of names and manifests that have none; only DaemonSets of it are selected
    ///
    /// Default: the namespace of the kubeconfig's context, or `default` with --snapshot. Unlike
    /// `kubectl apply -n`, manifests of other namespaces are skipped, not refused.
    #[arg(short, long, global = true, value_name = "NAMESPACE")]
    #[arg(help_heading = heading::NARROW)]
    pub(super) namespace: Option<NamespaceName>,

    /// When to use colours; `auto` honours `NO_COLOR`, `CLICOLOR_FORCE` and `TERM`
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(help_heading = heading::OUTPUT)]
    pub(super) color: Color,

    /// List every node instead of ranges; log requests and decisions to standard error
    ///
    /// Given twice, retries and watches are logged too. A request is logged with its verb, path,
    /// status and milliseconds, never with its content or credentials. `RUST_LOG` overrides what
    /// is logged.
    #[arg(short, long, global = true, action = ArgAction::Count, help_heading = heading::OUTPUT)]
    pub(super) verbose: u8,

    /// Print results and errors only: no warnings and no progress
    #[arg(short, long, global = true, conflicts_with = "verbose", help_heading = heading::OUTPUT)]
    pub(super) quiet: bool,

    /// Also annotate the lines of the manifests with their errors, and rollouts that wait, for this CI
    /// system
    #[arg(long, global = true, value_name = "SYSTEM")]
    #[arg(help_heading = heading::OUTPUT)]
    pub(super) annotations: Option<Annotations>,
}

impl GlobalFlags {
    /// Whether every node is listed.
    pub(super) fn is_verbose(&self) -> bool {
        self.verbose > 0
    }
}

/// Parses `--request-timeout` as kubectl does: a number alone is seconds, and 0 is no limit.
fn request_timeout(text: &str) -> Result<Duration, String> {
    let limit = text.parse().map(Duration::from_secs).or_else(|_| duration(text))?;
    Ok(if limit.is_zero() { Duration::MAX } else { limit })
}

/// Parses a duration with its units.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let error = || format!("`{text}` is not a duration such as 90s, 10m or 1h30m");
    let span: SignedDuration = text.parse().map_err(|_| error())?;
    Duration::try_from(span).map_err(|_| error())
}

/// `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Color {
    Auto,
    Always,
    Never,
}

impl From<Color> for anstream::ColorChoice {
    fn from(color: Color) -> Self {
        match color {
            Color::Auto => Self::Auto,
            Color::Always => Self::Always,
            Color::Never => Self::Never,
        }
    }
}

/// The source of manifests: git objects, or files.
#[derive(Args, Clone, Debug)]
pub(super) struct SourceFlags {
    /// Git repository: a folder in it, or a URL; default: that of the current folder
    #[arg(long, value_name = "DIR or URL", value_hint = ValueHint::AnyPath)]
    #[arg(help_heading = heading::SOURCE)]
    pub(super) repo: Option<OsString>,

    /// Revision to read, as git objects, without a checkout; default: HEAD
    #[arg(long, value_name = "REV", help_heading = heading::SOURCE)]
    pub(super) rev: Option<String>,

    /// File or folder inside the repository; repeatable; default: the whole repository
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath)]
    #[arg(help_heading = heading::SOURCE)]
    pub(super) path: Vec<PathBuf>,

    /// Folder of the repository to render at the revision, with the installed kustomize or kubectl
    ///
    /// A kustomization can name any file, any URL and plugins. So every kustomization that the
    /// folder refers to is read first, and anything but files of the same commit is refused. The
    /// program then runs with an empty environment, 60 s and 512 MiB of memory. If yours is
    /// refused: `kubectl kustomize DIR | ds-plan -f -`.
    #[arg(short = 'k', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(help_heading = heading::SOURCE, conflicts_with = "path", requires = "allow_kustomize")]
    pub(super) kustomize: Option<PathBuf>,

    /// Allow -k to run kustomize or kubectl on files of the repository
    #[arg(long, help_heading = heading::SOURCE, requires = "kustomize")]
    pub(super) allow_kustomize: bool,

    /// Plain file, folder, or - for standard input, instead of git; repeatable
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    #[arg(help_heading = heading::SOURCE, conflicts_with_all = ["repo", "rev", "path", "kustomize"])]
    pub(super) filename: Vec<OsString>,

    /// Also read the sub-folders of the folders that -f names
    #[arg(short = 'R', long, help_heading = heading::SOURCE, requires = "filename")]
    pub(super) recursive: bool,

    /// Also read RolloutPolicy documents from this file; repeatable
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::SOURCE)]
    pub(super) policy: Vec<OsString>,

    /// Read RolloutPolicy documents at this revision, not at that of the manifests
    ///
    /// For pipelines that must not use the policies of the commit that they apply: `--policy-from
    /// origin/policies`. A remote branch takes precedence over a tag of the same name.
    #[arg(long, value_name = "REV", help_heading = heading::SOURCE, conflicts_with = "filename")]
    pub(super) policy_from: Option<String>,

    /// Controller of the DaemonSets, overriding their policies; default: daemonset-controller
    #[arg(long, value_name = "CONTROLLER", help_heading = heading::SOURCE)]
    pub(super) managed_by: Option<ManagedByFlag>,

    /// Treat fields that the API does not know as errors, as warnings, or ignore them
    ///
    /// As with kubectl, `true` means `strict` and `false` means `ignore`. A field that is
    /// given twice is always a warning; the later value counts.
    #[arg(long, value_name = "MODE", num_args = 0..=1, require_equals = true)]
    #[arg(default_value = "strict", default_missing_value = "strict")]
    #[arg(help_heading = heading::SOURCE)]
    pub(super) validate: Validate,

    /// The commit must be in the history of this reference; only `ds-apply` has the flag.
    #[arg(skip)]
    pub(super) require_ref: Option<ReferenceName>,
}

impl SourceFlags {
    /// Whether policies are read in the current folder, or in files that were named.
    pub(super) fn has_policies_of_folder(&self) -> bool {
        let Self { repo, rev, policy_from, .. } = self;
        repo.is_none() && rev.is_none() && policy_from.is_none()
    }

    /// Whether a flag names a source; otherwise it is the repository of the current folder.
    pub(super) fn is_given(&self) -> bool {
        let Self { repo, rev, path, kustomize, filename, .. } = self;
        repo.is_some()
            || rev.is_some()
            || kustomize.is_some()
            || !path.is_empty()
            || !filename.is_empty()
    }
}

/// `--validate`: the treatment of fields that the API does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Validate {
    /// Unknown fields are errors.
    #[value(alias = "true")]
    Strict,
    /// Unknown fields are warnings.
    Warn,
    /// Unknown fields are dropped silently.
    #[value(alias = "false")]
    Ignore,
}

/// The name in the hidden marker of a Markdown document.
#[derive(Args, Clone, Debug)]
pub(super) struct CommentFlags {
    /// Name in the hidden marker of -o markdown, `<!-- ds-plan:NAME -->`; default: `default`
    ///
    /// A bot finds its earlier comment by the marker, and updates it. If a pipeline writes several
    /// comments to one pull request, for example one per cluster, give each its own name.
    #[arg(long = "comment", value_name = "NAME", help_heading = heading::OUTPUT)]
    name: Option<CommentId>,
}

impl CommentFlags {
    /// The options of a Markdown document; an error when the output is not Markdown but the flag is
    /// given.
    pub(super) fn options(
        &self,
        is_markdown: bool,
        verbose: bool,
        nodes: &[Node],
    ) -> Result<MarkdownOptions, Error> {
        if !is_markdown {
            let none = self.name.is_none();
            return if none { Ok(MarkdownOptions::default()) } else { Err(Error::CommentUnread) };
        }
        let comment = self.name.clone().unwrap_or_default();
        Ok(MarkdownOptions { comment, verbose, zones: zones(nodes) })
    }
}

/// The flags that select DaemonSets.
#[derive(Args, Clone, Debug)]
pub(super) struct NarrowFlags {
    /// Only these DaemonSets: NAME or ds/NAME (in the namespace of -n), or NAMESPACE/NAME
    #[arg(value_name = NAME)]
    pub(super) names: Vec<GivenName>,

    /// Only DaemonSets whose labels match: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`
    #[arg(short = 'l', long = "selector", value_name = "SELECTOR")]
    #[arg(help_heading = heading::NARROW)]
    pub(super) selector: Option<LabelSelector>,
}

/// The flags that select live DaemonSets, for commands that read no manifests.
#[derive(Args, Clone, Debug)]
pub(super) struct LiveFlags {
    #[command(flatten)]
    pub(super) narrow: NarrowFlags,

    /// DaemonSets of all namespaces, whatever -n and the context say
    #[arg(short = 'A', long, help_heading = heading::NARROW, conflicts_with = "names")]
    pub(super) all_namespaces: bool,
}

/// `--force-conflicts`: the field managers whose conflicts are forced.
#[derive(Args, Clone, Debug)]
pub(super) struct OwnershipFlags {
    /// Force conflicts with these managers: fields in git are set, fields not in git are removed
    ///
    /// Another client that writes the DaemonSet owns the fields that it wrote. Without this flag, a
    /// plan assumes that all conflicts are forced, and a guard blocks ds-apply until their managers
    /// are named here.
    #[arg(long = "force-conflicts", value_name = "MANAGER", value_delimiter = ',')]
    #[arg(help_heading = heading::SOURCE, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    force_conflicts: Vec<String>,
}

impl OwnershipFlags {
    /// The names of the managers, without duplicates.
    pub(super) fn names(&self) -> BTreeSet<String> {
        self.force_conflicts.iter().cloned().collect()
    }
}

/// `--show-values`, `--show-env`: the sensitive values that are shown.
#[derive(Args, Clone, Debug)]
pub(super) struct ValueFlags {
    /// Show values that may be secret: of env vars, HTTP headers, and flags such as --token
    #[arg(long, help_heading = heading::OUTPUT)]
    show_values: bool,

    /// Show the values of these environment variables only
    #[arg(long, value_name = "NAME", value_delimiter = ',', help_heading = heading::OUTPUT)]
    #[arg(conflicts_with = "show_values", value_parser = env_name)]
    show_env: Vec<String>,
}

impl ValueFlags {
    /// The values that are shown.
    pub(super) fn shown(&self) -> ShownValues<'_> {
        match &self.show_env[..] {
            _ if self.show_values => ShownValues::All,
            [] => ShownValues::None,
            names => ShownValues::Env(names),
        }
    }
}

/// Parses a name in `--show-env`: a pattern would match nothing.
fn env_name(text: &str) -> Result<String, String> {
    match text {
        "" => Err("a name is missing".to_owned()),
        pattern if pattern.contains(['*', '?']) => {
            Err("name each variable: patterns are not expanded".to_owned())
        }
        name => Ok(name.to_owned()),
    }
}

/// `--managed-by`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ManagedByFlag {
    /// Kubernetes' own controller creates pods and revisions
    DaemonsetController,
    /// ds-apply acts as the controller during its run; no other controller does
    DsApply,
}

impl From<ManagedByFlag> for ManagedBy {
    fn from(flag: ManagedByFlag) -> Self {
        match flag {
            ManagedByFlag::DaemonsetController => Self::DaemonSetController,
            ManagedByFlag::DsApply => Self::DsApply,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_timeout_is_that_of_kubectl() {
        let seconds = |seconds| Ok(Duration::from_secs(seconds));
        for (text, want) in [
            ("30s", seconds(30)),
            ("2m", seconds(120)),
            ("5", seconds(5)),
            ("0", Ok(Duration::MAX)),
            ("0s", Ok(Duration::MAX)),
            ("-1s", Err(())),
            ("soon", Err(())),
        ] {
            assert_eq!(request_timeout(text).map_err(|_| ()), want, "{text}");
        }
    }
}
