//! The identity of a run, written to the lock for other runs that wait for it.

use crate::error::Error;
use crate::shell::Shell;
use cluster::Holder;

/// Environment variables in which CI systems put the URL of a run.
const RUN_URLS: [&str; 3] = ["CI_JOB_URL", "BUILD_URL", "CIRCLE_BUILD_URL"];

/// The lock holder of this process.
pub(super) fn holder(shell: &Shell) -> Result<Holder, Error> {
    let text = |name: &str| shell.variable(name).map(|value| value.to_string_lossy().into_owned());
    let salt = Shell::salt()?;
    Ok(Holder {
        host: host(shell),
        pid: std::process::id(),
        user: text("USER").or_else(|| text("LOGNAME")).unwrap_or_default(),
        run: github_run(&text).or_else(|| RUN_URLS.iter().find_map(|name| text(name))),
        id: salt.to_string().chars().take(16).collect(),
    })
}

/// The name of a run in the cluster: the URL of its CI run, else user and host.
pub(super) fn by(holder: &Holder) -> String {
    let Holder { host, pid: _, user, run, id: _ } = holder;
    match run {
        Some(run) => run.clone(),
        None if user.is_empty() => host.clone(),
        None => format!("{user}@{host}"),
    }
}

fn host(shell: &Shell) -> String {
    let named = shell.variable("HOSTNAME").map(|name| name.to_string_lossy().into_owned());
    named.or_else(kernel_host_name).unwrap_or_else(|| "localhost".to_owned())
}

#[cfg(unix)]
fn kernel_host_name() -> Option<String> {
    rustix::system::uname().nodename().to_str().ok().map(str::to_owned)
}

#[cfg(not(unix))]
fn kernel_host_name() -> Option<String> {
    None
}

fn github_run(text: &impl Fn(&str) -> Option<String>) -> Option<String> {
    let [server, repository, run] =
        ["GITHUB_SERVER_URL", "GITHUB_REPOSITORY", "GITHUB_RUN_ID"].map(text);
    Some(format!("{}/{}/actions/runs/{}", server?, repository?, run?))
}
