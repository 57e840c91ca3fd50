//! What the checks of policies answer, as Markdown: a line for each check, and its values collapsed.

use super::comment::{MARKDOWN_LIMIT, MarkdownOptions, document};
use super::fit::{LengthVariants, fitted};
use super::markup::{code, fence, folded, html_code, prose};
use super::notices;
use crate::view::{
    Notice, asked_about, checks_headline, counted, role_words, sparkline, values, verdict_words,
};
use planner::check_report::{AskedCheck, CheckReport, DaemonSetChecks, SeriesValues};
use planner::words::count;

/// Length reserved for everything except the checks.
const BESIDES: usize = 6_000;
/// Series whose values are listed; the others are counted.
const MOST_SERIES: usize = 20;

/// The report as GitHub-flavoured Markdown, at most [`MARKDOWN_LIMIT`] bytes of it.
pub fn checks_markdown(report: &CheckReport, options: &MarkdownOptions) -> String {
    let CheckReport { api_version: _, kind: _, cluster, daemon_sets, warnings } = report;
    let headline = format!("**{}.**", checks_headline(report));
    let notices = Notice::of_warnings(warnings, &cluster.zones);
    let mut parts = vec![notices::warnings(&notices)];
    parts.extend(daemon_sets.iter().map(variants));
    let (shown, left_out) = fitted(&parts, MARKDOWN_LIMIT - BESIDES);
    let mut blocks = vec![headline];
    blocks.extend(shown);
    if !left_out.is_empty() {
        blocks.push(format!("Checks left out for length: {}.", count(left_out.len(), "DaemonSet")));
    }
    document(&blocks, &options.comment)
}

/// With all values, and with the answers only.
fn variants(daemon_set: &DaemonSetChecks) -> LengthVariants {
    let DaemonSetChecks { namespace, name, nodes, others, is_rolling_out, checks } = daemon_set;
    let title = format!(
        "{}: {}",
        code(format!("{namespace}/{name}")),
        prose(&asked_about(*nodes, *others, *is_rolling_out))
    );
    let block = |part: fn(&AskedCheck) -> String| {
        [title.clone()].into_iter().chain(checks.iter().map(part)).collect::<Vec<_>>().join("\n\n")
    };
    let whole = block(|check| format!("{}\n\n{}", answer(check), details(check)));
    [whole, block(answer)].into_iter().filter(|it| it.len() < MARKDOWN_LIMIT).collect()
}

/// The answer, and why it is none that passes.
fn answer(asked: &AskedCheck) -> String {
    let AskedCheck { check, role, answer, reason, .. } = asked;
    let why = reason.as_ref().map(|reason| format!(": {}", prose(&reason.to_string())));
    let verdict = verdict_words(*answer);
    format!("{} {}: **{verdict}**{}", role_words(*role), code(check), why.unwrap_or_default())
}

/// What it asks, its values over time, and those of each series.
fn details(asked: &AskedCheck) -> String {
    let AskedCheck {
        check,
        role: _,
        asks,
        answer: _,
        reason: _,
        series,
        points,
        min: _,
        max: _,
        each,
        over,
    } = asked;
    let mut lines = vec![asks.clone()];
    if let Some(words) = values(points, *series) {
        lines.extend([sparkline(points), words]);
    }
    lines.extend(over.as_ref().map(counted));
    lines.extend(each.iter().take(MOST_SERIES).map(|SeriesValues { labels, worst, last }| {
        format!("{{{}}}: worst {worst}, last {last}", labels.join(", "))
    }));
    if let Some(more @ 1..) = each.len().checked_sub(MOST_SERIES) {
        lines.push(format!("and {more} more series"));
    }
    folded(&format!("{}: its values", html_code(check)), &fence("text", &lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::checks::checks;

    #[test]
    fn each_check_has_its_answer_and_its_values_collapsed() {
        insta::assert_snapshot!(checks_markdown(&checks(), &MarkdownOptions::default()));
    }
}
