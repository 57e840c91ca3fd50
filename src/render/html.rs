//! Documents as one HTML page each, for people who would rather look than read: the fleet as a map,
//! waves and the budget's use over time, and a table of nodes to search and sort.
//!
//! A page holds all that it needs, and asks nobody for anything: its policy allows its own style and
//! scripts, by their digests, and nothing else. What is said in words and numbers, and the charts,
//! is HTML and SVG from here; map and table are drawn by the scripts in `html/`, from data that
//! stands in the page once. Not here: how text is kept from becoming markup (`markup`).

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
use crate::model::Node;
use markup::{Html, embedded};
use picture::Picture;

pub use drift::drift_html;
pub use plan::plan_html;
pub use rollout::{RolloutReport, rollout_html};

/// The page around everything; `{{NAME}}` is where something goes.
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

/// What a page is made for.
#[derive(Clone, Copy, Debug, Default)]
pub struct HtmlOptions<'a> {
    /// The cluster's nodes, for the map.
    pub nodes: &'a [Node],
    /// Values of fields in full length.
    pub verbose: bool,
}

/// What is on a page.
struct Page {
    /// What kind of document it is: `plan`, `drift`.
    kind: &'static str,
    /// The most important sentence.
    headline: String,
    /// What was compared with what.
    about: Vec<String>,
    /// What matters most, at a glance.
    glance: Html,
    /// What stands before and after map and table of nodes.
    before: Html,
    after: Html,
    picture: Picture,
    /// How it was made.
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

/// The page's template, with `content` in its places. What is put in is not looked at again.
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

/// What the page may load and run: its own style and scripts, as they are here.
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
    fn every_place_of_the_page_is_filled_and_content_is_not_looked_at() {
        let page = filled(|_| "{{title}}".to_owned());
        assert_eq!(page.matches("{{").count(), PAGE.matches("{{").count());
        let page = filled(|name| format!("<{name}>"));
        assert!(!page.contains("{{"), "{page}");
    }

    /// A stray one would end the element, and the digest would not fit.
    #[test]
    fn scripts_and_style_do_not_end_themselves() {
        for text in SCRIPTS.iter().chain([&STYLE]) {
            assert!(!text.contains("</"), "{text}");
            assert!(!text.contains("<!--"), "{text}");
        }
    }
}
