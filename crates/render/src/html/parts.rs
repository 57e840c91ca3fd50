//! Parts that several pages share: tiles with numbers, messages, diffs, tables.

use std::fmt::Display;

use super::markup::Html;
use super::picture::{Marker, Tone};
use crate::view::{FieldChange, Notice, Origin, diff_lines, number_of, some_of};
use planner::words::{count, grouped};

/// Maximum number of fields of one DaemonSet that are shown with their values.
const MOST_FIELDS: usize = 400;

/// A number with what it counts; its colour is that of the marker with this tone, if it has one.
pub(super) struct Tile {
    pub number: u64,
    pub words: String,
    pub symbol: &'static str,
    pub tone: Option<Tone>,
}

impl Tile {
    /// The number of nodes with a marker.
    pub(super) fn of(marker: Marker, number: impl Into<u64>) -> Self {
        let Marker { words, symbol, shape: _, tone } = marker;
        Self { number: number.into(), words: words.to_owned(), symbol, tone: Some(tone) }
    }
}

/// Tiles, in the colours of the legend.
pub(super) fn tiles(tiles: impl IntoIterator<Item = Tile>) -> Html {
    let tiles = tiles.into_iter().map(|Tile { number, words, symbol, tone }| {
        let tone = tone.map_or("", Tone::class);
        let class = if number == 0 { "none" } else { tone };
        let symbol = Html::with("span", &[("class", "symbol"), ("aria-hidden", "true")], symbol);
        let number = Html::from([Html::of("b", grouped(number)), symbol]);
        let what = Html::of("dt", words);
        Html::with("div", &[("class", class)], [what, Html::of("dd", number)])
    });
    Html::class("dl", "tiles", tiles.collect::<Html>())
}

/// A section of the page with a heading.
pub(super) fn section(id: &'static str, heading: &str, content: Html) -> Html {
    if content.is_empty() {
        return content;
    }
    let title = format!("{id}-title");
    let heading = Html::with("h2", &[("id", &title)], heading);
    Html::with("section", &[("id", id), ("aria-labelledby", &title)], [heading, content])
}

/// Collapsed content.
pub(super) fn folded(summary: Html, content: Html) -> Html {
    Html::of("details", [Html::of("summary", summary), content])
}

/// A list; empty without items.
pub(super) fn list(items: impl IntoIterator<Item = Html>) -> Html {
    let items: Html = items.into_iter().map(|item| Html::of("li", item)).collect();
    if items.is_empty() { items } else { Html::of("ul", items) }
}

/// The DaemonSets without anything to show, in one line; empty if there are none.
pub(super) fn quiet(what: &str, keys: Vec<String>, verbose: bool) -> Html {
    if keys.is_empty() {
        return Html::default();
    }
    let others = count(keys.len(), "other DaemonSet");
    Html::class("p", "note", format!("{what} {others}: {}.", some_of(keys, verbose)))
}

/// A table with a heading for each column. It can be scrolled by keyboard where it is too wide.
pub(super) fn table(
    caption: &str,
    heads: &[impl AsRef<str>],
    rows: impl Iterator<Item = Vec<Html>>,
) -> Html {
    // On narrow screens each row is a card, in which each cell has its heading beside it.
    let rows = rows.map(|cells| {
        let cells = cells.into_iter().zip(heads).enumerate().map(|(nth, (cell, head))| match nth {
            0 => Html::with("th", &[("scope", "row")], cell),
            _ => Html::with("td", &[("data-head", head.as_ref())], cell),
        });
        Html::of("tr", cells.collect::<Html>())
    });
    let rows: Html = rows.collect();
    let heads = heads.iter().map(|head| Html::with("th", &[("scope", "col")], head.as_ref()));
    let parts = [
        Html::class("caption", "unseen", caption),
        Html::of("thead", Html::of("tr", heads.collect::<Html>())),
        Html::of("tbody", rows),
    ];
    let around =
        [("class", "wide"), ("tabindex", "0"), ("role", "region"), ("aria-label", caption)];
    Html::with("div", &around, Html::of("table", parts))
}

/// Field changes as a diff.
pub(super) fn diff<'a>(
    changes: impl ExactSizeIterator<Item = &'a FieldChange>,
    verbose: bool,
) -> Html {
    let fields = changes.len();
    if fields == 0 {
        return Html::default();
    }
    let most = if verbose { fields } else { MOST_FIELDS };
    let lines = changes.take(most).flat_map(|change| diff_lines(change, verbose)).map(|line| {
        let tag = match line.as_bytes().first() {
            Some(b'+') => "ins",
            Some(b'-') => "del",
            Some(b'@') => "b",
            _ => "span",
        };
        Html::of(tag, line)
    });
    let mut lines: Vec<Html> = lines.collect();
    if fields > most {
        lines.push(Html::of("span", format!("and {}", count(fields - most, "more field"))));
    }
    let around =
        [("class", "diff"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Fields")];
    Html::with("div", &around, lines.into_iter().collect::<Html>())
}

/// `logging/fluent-bit: MESSAGE (3 nodes: …)`.
fn about(notice: &Notice<'_>) -> Html {
    let subject = notice.subject(str::to_owned).map(code).into_iter();
    let nodes = notice.whereabouts().map(|nodes| Html::class("span", "aside", nodes));
    subject.chain([Html::of("span", notice.message)]).chain(nodes).collect()
}

/// Guards.
pub(super) fn guards(guards: &[Notice<'_>]) -> Html {
    if guards.is_empty() {
        return Html::default();
    }
    let items = guards.iter().map(|guard| {
        let way_out = [Html::of("span", guard.way_out())].into_iter();
        let way_out = way_out.chain(guard.allow_flag.map(code)).collect::<Html>();
        Html::from([about(guard), Html::class("span", "aside", way_out)])
    });
    let heading = format!("Blocked by {}", count(number_of(guards), "guard"));
    Html::class("aside", "callout refused", [Html::of("h2", heading), list(items)])
}

/// Warnings, collapsed.
pub(super) fn warnings(warnings: &[Notice<'_>]) -> Html {
    if warnings.is_empty() {
        return Html::default();
    }
    let summary = Html::text(count(number_of(warnings), "warning"));
    Html::class("aside", "callout warned", folded(summary, list(warnings.iter().map(about))))
}

/// The source, the observed cluster, and when it was observed.
pub(super) fn compared(origin: &Origin<'_>) -> impl Iterator<Item = String> {
    let at = origin.snapshot.is_none().then(|| format!("observed at {}", origin.observed_at));
    [origin.source_words(false), origin.cluster_words()].into_iter().chain(at)
}

/// A name from outside.
pub(super) fn code(text: impl Display) -> Html {
    Html::of("code", text.to_string())
}
