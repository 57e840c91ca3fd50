//! Documents as HTML pages, one page each: the fleet as a map, rounds and the use of the budget over
//! time, and a table of nodes to search and sort.
//!
//! A page is self-contained and loads nothing: its Content-Security-Policy allows its own style and
//! scripts, by their digests, and nothing else. Text, numbers and charts are HTML and SVG made
//! here; the scripts in `html/` draw the map and the table from data that is embedded once.
//! Escaping is in `escape`.
//!
//! Text can only become markup through `markup`, which escapes it; the scripts only ever set text.
//! Their data is in the page by columns, with repeated texts as numbers (`picture`). Injected
//! scripts would not run, because their digests are not those in the policy of the page. All cells
//! of a block that look alike are one SVG path, so 5,000 of them cost little. The tests with
//! feature `web` open pages in a real Chromium, which an npm package provides (or `$CHROMIUM`
//! names).

mod charts;
mod checks;
mod drift;
mod markup;
mod page;
mod parts;
mod picture;
mod plan;
mod rollout;
mod timeline;

pub use checks::checks_html;
pub use drift::drift_html;
pub use page::HtmlOptions;
pub use plan::plan_html;
pub use rollout::{RolloutReport, rollout_html};
