//! Examples of the documentation, to be tested as they are shown.

use testkit::pages::pages;

/// The first block of YAML with an object of this kind, in README.md or the guide.
pub(crate) fn shown_yaml(kind: &str) -> String {
    let kind = format!("kind: {kind}\n");
    let pages = pages();
    let mut blocks = pages.iter().flat_map(|(_, page)| {
        page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap())
    });
    blocks.find(|block| block.contains(&kind)).unwrap().to_owned()
}
