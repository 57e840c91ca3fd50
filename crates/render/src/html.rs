//! Documents as HTML pages, one page each: the fleet as a map, waves and the use of the budget over
//! time, and a table of nodes to search and sort.
//!
//! A page is self-contained and loads nothing: its Content-Security-Policy allows its own style and
//! scripts, by their digests, and nothing else. Text, numbers and charts are HTML and SVG made
//! here; the scripts in `html/` draw the map and the table from data that is embedded once.
//! Escaping is in `markup`.
//!
//! Text can only become markup through `markup`, which escapes it; the scripts only ever set text.
//! Their data is in the page by columns, with repeated texts as numbers (`picture`). Injected
//! scripts would not run, because their digests are not those in the policy of the page. All cells
//! of a block that look alike are one SVG path, so 5,000 of them cost little. The tests with
//! feature `web` open pages in a real Chromium, which an npm package provides (or `$CHROMIUM`
//! names).

mod charts;
mod drift;
mod markup;
mod picture;
mod plan;
mod rollout;
mod words;

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::Error;
use daemonset::model::Node;
use markup::{Html, embedded};
use picture::Picture;

pub use drift::drift_html;
pub use plan::plan_html;
pub use rollout::{RolloutReport, rollout_html};

/// The template of the page, with placeholders `{{NAME}}`.
const PAGE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/report.css");
/// In the order in which they run.
const SCRIPTS: [&str; 5] = [
    include_str!("html/data.js"),
    include_str!("html/filter.js"),
    include_str!("html/map.js"),
    include_str!("html/table.js"),
    include_str!("html/main.js"),
];

/// Options of an HTML page.
#[derive(Clone, Copy, Debug, Default)]
pub struct HtmlOptions<'a> {
    /// The cluster's nodes, for the map.
    pub nodes: &'a [Node],
    /// Whether values of fields are shown in full length.
    pub verbose: bool,
}

/// The content of a page.
struct Page {
    /// The kind of the document: `plan`, `drift`.
    kind: &'static str,
    /// The most important sentence.
    headline: String,
    /// The source and the cluster that were compared.
    about: Vec<String>,
    /// The most important numbers.
    glance: Html,
    /// The content before and after the map and the table of nodes.
    before: Html,
    after: Html,
    picture: Picture,
    /// The program and version that made the page.
    footer: String,
}

impl Page {
    fn write(self) -> Result<String, Error> {
        let Self { kind, headline, about, glance, before, after, picture, footer } = self;
        let data = embedded(&picture).map_err(Error::Json)?;
        let title = Html::text(format!("{headline} – ds-plan {kind}"));
        let about: Html = about.into_iter().map(|it| Html::of("li", it)).collect();
        let scripts = SCRIPTS.map(|script| format!("<script>{script}</script>\n")).concat();
        let (headline, footer) = (Html::text(headline), Html::text(footer));
        Ok(filled(|name| match name {
            "policy" => policy(),
            "title" => title.as_str().to_owned(),
            "style" => STYLE.to_owned(),
            "kind" => kind.to_owned(),
            "headline" => headline.as_str().to_owned(),
            "about" => about.as_str().to_owned(),
            "glance" => glance.as_str().to_owned(),
            "before" => before.as_str().to_owned(),
            "after" => after.as_str().to_owned(),
            "footer" => footer.as_str().to_owned(),
            "data" => data.clone(),
            "scripts" => scripts.clone(),
            other => format!("{{{{{other}}}}}"),
        }))
    }
}

/// The template with `content` in its placeholders. Inserted text is not searched for placeholders.
fn filled(content: impl Fn(&str) -> String) -> String {
    let mut page = String::new();
    for (nth, piece) in PAGE.split("{{").enumerate() {
        match piece.split_once("}}") {
            Some((name, rest)) if nth > 0 => {
                page.push_str(&content(name));
                page.push_str(rest);
            }
            Some(_) | None => page.push_str(piece),
        }
    }
    page
}

/// The Content-Security-Policy of the page: its own style and scripts only.
fn policy() -> String {
    let mut policy =
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src".to_owned();
    let _ = write!(policy, " {}; script-src", digest(STYLE));
    for script in SCRIPTS {
        let _ = write!(policy, " {}", digest(script));
    }
    policy
}

fn digest(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_placeholder_is_filled_and_inserted_text_is_not_searched() {
        let page = filled(|_| "{{title}}".to_owned());
        assert_eq!(page.matches("{{").count(), PAGE.matches("{{").count());
        let page = filled(|name| format!("<{name}>"));
        assert!(!page.contains("{{"), "{page}");
    }

    /// An end tag in a script would end the element, and its digest would not match.
    #[test]
    fn scripts_and_style_do_not_end_themselves() {
        for text in SCRIPTS.iter().chain([&STYLE]) {
            assert!(!text.contains("</"), "{text}");
            assert!(!text.contains("<!--"), "{text}");
        }
    }
}
