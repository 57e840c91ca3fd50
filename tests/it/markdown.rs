//! `-o markdown` as shown on github.com: whatever text a manifest or a cluster contains, the
//! comment keeps its structure, has no links and mentions nobody.

use std::sync::LazyLock;

use planner::plan::{Diff, Drift, Plan};
use proptest::prelude::*;
use render::{MarkdownOptions, diff_markdown, drift_markdown, plan_markdown};
use serde_json::Value;

use crate::github::{Node, rendered};
use testkit::fixture::{AGENT, cluster_with};
use testkit::hostile_text::{self, HostilePlan};
use testkit::sandbox::Sandbox;

/// All tags of our Markdown.
const TAGS: [&str; 15] = [
    "", "p", "strong", "code", "pre", "table", "thead", "tbody", "tr", "th", "td", "details",
    "summary", "ul", "li",
];

/// A repository with a pull request that changes much, and a cluster that another client changed
/// too.
fn sandbox() -> Sandbox {
    let live = AGENT.replace("agent:1", "agent:0").replace("{tier: node}", "{tier: node, x: y}");
    let asked = AGENT.replace("agent:1", "agent:2").replace(
        "    spec:\n",
        "    spec:\n      nodeSelector: {disk: ssd}\n      tolerations: [{key: gpu, operator: Exists}]\n",
    );
    let sandbox = Sandbox::with(&[("manifests/agent.yaml", AGENT)]);
    sandbox.write(
        "manifests/other.yaml",
        AGENT.replace("name: agent\n  namespace", "name: other\n  namespace"),
    );
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "-b", "request"]);
    sandbox.write("manifests/agent.yaml", asked);
    sandbox.commit();
    let cluster = cluster_with(&live, &["node-1", "node-2"]);
    sandbox.write("cluster.json", cluster.to_string());
    sandbox
}

fn document(line: &str) -> Value {
    let run =
        sandbox().ds_plan(&format!("{line} --path manifests --snapshot cluster.json -o json"));
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run}"))
}

pub(crate) static PLAN: LazyLock<HostilePlan<Plan>> = LazyLock::new(|| {
    HostilePlan::of(&serde_json::from_value(document("plan --base main")).unwrap())
});
pub(crate) static DRIFT: LazyLock<HostilePlan<Drift>> =
    LazyLock::new(|| HostilePlan::of(&serde_json::from_value(document("drift")).unwrap()));
static DIFF: LazyLock<HostilePlan<Diff>> =
    LazyLock::new(|| HostilePlan::of(&serde_json::from_value(document("diff")).unwrap()));

/// Renders `markdown` as github.com does; returns an error if it is not as expected.
fn looked_at(markdown: &str) -> Result<Node, String> {
    let root = rendered(markdown);
    let mut faults = Vec::new();
    let mut comments = Vec::new();
    root.walk(&mut |path, node| {
        let in_code = path.contains(&"code");
        match node.kind.as_str() {
            "text" if !in_code && !is_plain(&node.value) => faults.push(node.value.clone()),
            "comment" => comments.push(node.value.as_str()),
            "element" if !TAGS.contains(&node.tag_name.as_str()) => {
                faults.push(format!("<{}>", node.tag_name));
            }
            "element" if node.properties.keys().any(|name| name != "className") => {
                faults.push(format!("<{} {:?}>", node.tag_name, node.properties));
            }
            "element" if node.tag_name == "details" && path != [""] => {
                faults.push(format!("details in {path:?}"));
            }
            _ => {}
        }
    });
    for table in root.all("table") {
        let columns = table.all("th").len();
        for row in table.all("tr") {
            let cells = row.all("td").len() + row.all("th").len();
            if cells != columns {
                faults.push(format!("a row of {cells} cells in {columns} columns: {}", row.text()));
            }
        }
    }
    let folded = markdown.lines().filter(|line| line.starts_with("<details><summary>")).count();
    if root.all("details").len() != folded {
        faults.push(format!("{} of {folded} folded blocks", root.all("details").len()));
    }
    if comments != [" ds-plan:default "] {
        faults.push(format!("markers {comments:?}"));
    }
    if faults.is_empty() { Ok(root) } else { Err(format!("{faults:#?}\nin\n{markdown}")) }
}

/// Whether `text`, outside of code, contains only words and nothing that GitHub interprets.
fn is_plain(text: &str) -> bool {
    let plain =
        |c: char| c.is_ascii_alphanumeric() || c.is_whitespace() || "()-':;,.>…".contains(c);
    let letter = |c: u8| c.is_ascii_alphanumeric();
    let dots = text.as_bytes().windows(3).any(|w| letter(w[0]) && w[1] == b'.' && letter(w[2]));
    text.chars().all(plain) && !dots
}

fn options(verbose: bool) -> MarkdownOptions {
    MarkdownOptions { verbose, ..MarkdownOptions::default() }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn hostile_text_has_no_effect_in_a_comment(
        seeds in prop::collection::vec(hostile_text::seed(), 1..12),
        verbose: bool,
    ) {
        let plan = PLAN.sown(&seeds);
        let mut options = options(verbose);
        for (node, seed) in plan.daemon_sets.iter().flat_map(|it| &it.nodes).zip(&seeds) {
            options.zones.insert(node.name.clone(), seed.as_str().into());
        }
        looked_at(&plan_markdown(&plan, &options)).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn hostile_text_has_no_effect_in_reports(seeds in prop::collection::vec(hostile_text::seed(), 1..12), verbose: bool) {
        let drift = drift_markdown(&DRIFT.sown(&seeds), &options(verbose));
        looked_at(&drift).map_err(TestCaseError::fail)?;
        let diff = diff_markdown(&DIFF.sown(&seeds), &options(verbose));
        looked_at(&diff).map_err(TestCaseError::fail)?;
    }
}

#[test]
fn a_comment_has_a_table_and_folded_details() {
    let run =
        sandbox().ds_plan("plan --base main --path manifests --snapshot cluster.json -o markdown");
    let root = looked_at(&run.stdout).unwrap();
    let [table] = root.all("table")[..] else { panic!("{run}") };
    let keys: Vec<String> =
        table.all("tr").iter().skip(1).map(|row| row.all("td")[0].text()).collect();
    assert_eq!(keys, ["logging/agent", "logging/other"]);
    let first = root.children.iter().find(|node| node.kind == "element").unwrap();
    let text = first.text();
    assert!(text.starts_with("Cluster ") && text.contains(": merging "), "{text}");
    let summaries: Vec<String> = root.all("summary").iter().map(|it| it.text()).collect();
    assert!(summaries.iter().any(|it| it.starts_with("logging/agent: ")), "{summaries:?}");
    let diffs = root.all("code");
    assert!(diffs.iter().any(|code| code.properties.contains_key("className")), "{run}");
}

#[test]
fn the_check_detects_links_and_mentions() {
    for hostile in ["@octocat", "#12", "https://x.example", "<b>x</b>", "# a", "![a](b)", "*a*"] {
        let text = format!("{hostile}\n\n<!-- ds-plan:default -->\n");
        assert!(looked_at(&text).is_err(), "{hostile}");
    }
    looked_at("**Merging** `#12`\n\n<!-- ds-plan:default -->\n").unwrap();
}
