//! What the checks of policies answer: a block for each DaemonSet, with a picture of each series.

use super::page::{ASIDE, GAIN, HALT, LOSS, Line, NAME, Page, TextOptions};
use crate::view::{asked_about, counted, role_words, sparkline, values, verdict_words};
use planner::check_report::{AskedCheck, CheckReport, CheckVerdict, DaemonSetChecks};

const INDENT: usize = 2;

/// The report as text; warnings are printed elsewhere.
pub fn checks_text(report: &CheckReport, options: &TextOptions) -> String {
    let CheckReport { api_version: _, kind: _, cluster: _, daemon_sets, warnings: _ } = report;
    let mut page = Page::default();
    if daemon_sets.is_empty() {
        page.push(Line::at(0).plain("No policy of these DaemonSets has checks."));
    }
    for daemon_set in daemon_sets {
        page.gap();
        block(&mut page, daemon_set);
    }
    page.write(*options)
}

fn block(page: &mut Page, daemon_set: &DaemonSetChecks) {
    let DaemonSetChecks { namespace, name, nodes, others, is_rolling_out, checks } = daemon_set;
    let about = asked_about(*nodes, *others, *is_rolling_out);
    page.push(
        Line::at(0).styled(NAME, format!("{namespace}/{name}")).styled(ASIDE, format!("  {about}")),
    );
    for check in checks {
        one(page, check);
    }
}

fn one(page: &mut Page, asked: &AskedCheck) {
    let AskedCheck {
        check,
        role,
        asks,
        answer,
        reason,
        series,
        points,
        min: _,
        max: _,
        each: _,
        over,
    } = asked;
    let style = match answer {
        CheckVerdict::Pass => GAIN,
        CheckVerdict::Fail => LOSS,
        CheckVerdict::Unknown => HALT,
    };
    let title = format!("{} {check}: ", role_words(*role));
    let line = Line::at(INDENT).plain(title).styled(style, verdict_words(*answer));
    page.push(match reason {
        Some(reason) => line.plain(format!(": {reason}")),
        None => line,
    });
    page.push(Line::at(2 * INDENT).styled(ASIDE, asks));
    if let Some(words) = values(points, *series) {
        let words = format!("  {words}");
        page.push(Line::at(2 * INDENT).whole().plain(sparkline(points)).styled(ASIDE, words));
    }
    if let Some(over) = over {
        page.push(Line::at(2 * INDENT).plain(counted(over)));
    }
}
