//! `ds-apply approve`: approves a step of a rollout (`approve: true` in a policy).
//!
//! The target is planned as `ds-apply apply` plans it, because an approval is of one template. Not
//! here: the user's approval of a plan (`approve`).

mod args;
mod request;
mod shown;

use super::approve::ask_whether;
use super::identity;
use super::session::Session;
use crate::error::{ApprovalError, Error};
use crate::exit::Exit;
use crate::flags::GlobalFlags;
pub(crate) use args::Args;
use daemonset::model::{Approval, DaemonSetKey};
use planner::approval::ApprovalStatus;
use request::Request;
use shown::Shown;

pub(super) async fn run(
    args: &Args,
    key: &DaemonSetKey,
    global: &GlobalFlags,
    session: &mut Session,
) -> Result<Exit, Error> {
    let request = session
        .unless_interrupted(async |shell, cluster| {
            Request::read(args, key, global, shell, cluster).await
        })
        .await?;
    let target = request.target()?;
    let before = target.check.status(request.approval());
    let shown = Shown { target: &target, source: &request.plan.source, output: args.output };
    if let ApprovalStatus::Given { by, at } = &before {
        shown.evidence(&session.shell)?;
        shown.result("is approved already:", (by, *at), &session.shell)?;
        return Ok(Exit::Done);
    }
    target.check_turn(key)?;
    if args.dry_run {
        shown.evidence(&session.shell)?;
        shown.void(&before, &session.shell)?;
        shown.not_approved(&session.shell)?;
        return Ok(Exit::Done);
    }
    let approval = target.check.approve(identity::by(&session.holder));
    // A missing permission is reported before the user is asked.
    write(key, args, &approval, Write::Try, session).await?;
    shown.evidence(&session.shell)?;
    shown.void(&before, &session.shell)?;
    if !args.yes {
        ask_whether(&format!("Approve step {} of {key}?", target.step.step.name), &session.shell)?;
    }
    write(key, args, &approval, Write::Apply, session).await?;
    shown.result("is approved:", (&approval.by, approval.at), &session.shell)?;
    Ok(Exit::Done)
}

/// Whether the approval is written.
#[derive(Clone, Copy)]
enum Write {
    /// By a dry run.
    Try,
    /// It is.
    Apply,
}

async fn write(
    key: &DaemonSetKey,
    args: &Args,
    approval: &Approval,
    write: Write,
    session: &mut Session,
) -> Result<(), Error> {
    session
        .unless_interrupted(async |_, cluster| {
            let done = match write {
                Write::Try => cluster.try_approve_step(key, &args.step, approval).await,
                Write::Apply => cluster.approve_step(key, &args.step, approval).await,
            };
            let daemon_set = key.clone();
            let failed = |source| ApprovalError::Write { daemon_set, source: Box::new(source) };
            Ok(done.map_err(failed)?)
        })
        .await
}
