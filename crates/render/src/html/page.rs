//! The page around the content of a document.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::markup::{Html, embedded};
use super::picture::Picture;
use crate::error::Error;
use daemonset::model::Node;

/// The template of the page, with placeholders `{{NAME}}`.
const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("report.css");
/// In the order in which they run.
const SCRIPTS: [&str; 5] = [
    include_str!("data.js"),
    include_str!("filter.js"),
    include_str!("map.js"),
    include_str!("table.js"),
    include_str!("main.js"),
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
pub(super) struct Page {
    /// The kind of the document: `plan`, `drift`.
    pub kind: &'static str,
    /// The most important sentence.
    pub headline: String,
    /// The source and the cluster that were compared.
    pub about: Vec<String>,
    /// The most important numbers.
    pub glance: Html,
    /// The heading of the map and the table of nodes.
    pub fleet: String,
    /// The content before and after the map and the table of nodes.
    pub before: Html,
    pub after: Html,
    pub picture: Picture,
    /// The program and version that made the page.
    pub footer: String,
}

impl Page {
    pub(super) fn write(self) -> Result<String, Error> {
        let Self { kind, headline, about, glance, fleet, before, after, picture, footer } = self;
        let fleet = Html::text(fleet);
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
            "fleet" => fleet.as_str().to_owned(),
            "before" => before.as_str().to_owned(),
            "after" => after.as_str().to_owned(),
            "footer" => footer.as_str().to_owned(),
            "data" => data.clone(),
            "scripts" => scripts.clone(),
            other => format!("{{{{{other}}}}}"),
        }))
    }
}

/// A page without scripts: a heading, and content.
pub(super) fn plain(
    kind: &str,
    headline: &str,
    about: Vec<String>,
    content: Html,
    footer: &str,
) -> String {
    let policy = format!(
        "default-src 'none'; base-uri 'none'; form-action 'none'; style-src {}",
        digest(STYLE)
    );
    let title = Html::text(format!("{headline} – ds-plan {kind}"));
    let about: Html = about.into_iter().map(|it| Html::of("li", it)).collect();
    let header = Html::of(
        "header",
        [
            Html::class("p", "eyebrow", [Html::text("ds-plan "), Html::of("span", kind)]),
            Html::of("h1", headline),
            Html::class("ul", "about", about),
        ],
    );
    let body = [header, Html::of("main", content), Html::of("footer", footer)];
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{}\n</body>\n</html>\n",
        title.as_str(),
        Html::from(body).as_str()
    )
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
