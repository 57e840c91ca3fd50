//! What the checks of policies answer, as a page without scripts: a chart of the values of each check
//! with its bounds, and the values of each series.

use super::charts::{Bounds, samples};
use super::markup::Html;
use super::page::plain;
use super::parts::{code, folded, list, section, table, warnings};
use crate::view::{
    Notice, asked_about, checks_headline, counted, role_words, sparkline, values, verdict_words,
};
use daemonset::model::Bound;
use planner::check_report::{AskedCheck, CheckReport, DaemonSetChecks, SeriesValues};
use planner::words::count;

/// Series whose values are listed; the others are counted.
const MOST_SERIES: usize = 500;

/// The report as one HTML page.
pub fn checks_html(report: &CheckReport) -> String {
    let CheckReport { api_version: _, kind: _, cluster, daemon_sets, warnings: all } = report;
    let headline = checks_headline(report);
    let cluster_name = cluster.name.as_ref().map(|name| format!("cluster {name}"));
    let about = [
        cluster_name,
        Some(count(cluster.nodes as usize, "node")),
        Some(format!("asked at {}", cluster.observed_at)),
    ];
    let notices = Notice::of_warnings(all, &cluster.zones);
    let blocks: Html = daemon_sets.iter().map(block).collect();
    let content = [warnings(&notices), section("checks", "Checks", blocks)];
    let about: Vec<String> = about.into_iter().flatten().collect();
    plain("checks", &headline, about, content.into(), "Made by ds-plan checks.")
}

fn block(daemon_set: &DaemonSetChecks) -> Html {
    let DaemonSetChecks { namespace, name, nodes, others, is_rolling_out, checks } = daemon_set;
    let about = asked_about(*nodes, *others, *is_rolling_out);
    let title = [code(format!("{namespace}/{name}")), Html::class("span", "aside", about)];
    let checks: Html = checks.iter().map(one).collect();
    [Html::of("h3", title), checks].into()
}

fn one(asked: &AskedCheck) -> Html {
    let AskedCheck { check, role, asks, answer, reason, series, points, min, max, each, over } =
        asked;
    let why = reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let title = [
        Html::text(format!("{} ", role_words(*role))),
        code(check),
        Html::of("b", format!(" {}", verdict_words(*answer))),
        Html::text(why),
    ];
    let words = values(points, *series);
    let chart = words.as_ref().map(|words| {
        let name = format!("{check}: {words}; {asks}");
        let bounds = Bounds { min: min.map(Bound::value), max: max.map(Bound::value) };
        let caption = Html::of("figcaption", [Html::class("span", "aside", words.as_str())]);
        let numbers: Vec<_> = points.iter().map(|it| (it.at.as_second(), it.value.0)).collect();
        let drawn = samples(&name, &numbers, bounds);
        // Where nothing can be drawn, characters show what is no number.
        let drawn = if drawn.is_empty() { code(sparkline(points)) } else { drawn };
        Html::of("figure", [caption, drawn])
    });
    let facts = [Some(code(asks)), over.as_ref().map(|it| Html::text(counted(it)))];
    [
        Html::of("h4", title),
        chart.unwrap_or_default(),
        list(facts.into_iter().flatten()),
        of_each(check, each),
    ]
    .into()
}

/// The values of each series, collapsed.
fn of_each(check: &str, each: &[SeriesValues]) -> Html {
    if each.is_empty() {
        return Html::default();
    }
    let rows = each.iter().take(MOST_SERIES).map(|SeriesValues { labels, worst, last }| {
        vec![code(labels.join(", ")), worst.to_string().into(), last.to_string().into()]
    });
    let rows = table(&format!("Series of {check}"), &["Series", "Worst", "Last"], rows);
    let more = each.len().saturating_sub(MOST_SERIES);
    let more = (more > 0).then(|| Html::class("p", "note", format!("and {more} more")));
    let summary = Html::text(format!("{} of {check}", count(each.len(), "series")));
    folded(summary, [rows, more.unwrap_or_default()].into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::checks::checks;

    #[test]
    fn a_chart_has_the_bounds_and_a_table_each_series() {
        let page = checks_html(&checks());
        for want in [
            "<h1>2 checks: fail</h1>",
            "aria-label=\"errors: 0 to 0.25, last 0.25, worst of 2 series, since ",
            // The bound is near the bottom, the last value at the top.
            "class=\"line\" d=\"M44.0 120.0h0L502.0 68.0L960.0 16.0\"",
            "class=\"budget\" d=\"M44 115.8H960\"",
            ">at most 0.01</text>",
            "<code>node=a-04</code>",
            "<code>quiet</code>",
            " pass</b>",
        ] {
            assert!(page.contains(want), "{want}: {page}");
        }
        assert_eq!(page.matches("<svg").count(), 1, "a check without a series has no chart");
        assert!(!page.contains("<script"), "{page}");
    }
}
