//! Markdown as github.com shows it: rendered by packages from npm, in one Node.js process for all
//! tests.

use std::sync::{LazyLock, Mutex};

use serde::Deserialize;

use crate::web::Program;

/// A node of the tree that a browser would build.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    /// `root`, `element`, `text` or `comment`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Only of an element.
    #[serde(default)]
    pub(crate) tag_name: String,
    /// Only of an element.
    #[serde(default)]
    pub(crate) properties: serde_json::Map<String, serde_json::Value>,
    /// Only of a text or a comment.
    #[serde(default)]
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) children: Vec<Node>,
}

impl Node {
    /// This node and all below it, in order, each with its enclosing tags.
    pub(crate) fn walk<'a>(&'a self, visit: &mut impl FnMut(&[&'a str], &'a Node)) {
        fn go<'a>(
            node: &'a Node,
            path: &mut Vec<&'a str>,
            visit: &mut impl FnMut(&[&'a str], &'a Node),
        ) {
            visit(path, node);
            path.push(&node.tag_name);
            for child in &node.children {
                go(child, path, visit);
            }
            path.pop();
        }
        go(self, &mut Vec::new(), visit);
    }

    /// All elements of that name.
    pub(crate) fn all<'a>(&'a self, tag: &str) -> Vec<&'a Node> {
        let mut found = Vec::new();
        self.walk(&mut |_, node| {
            if node.tag_name == tag {
                found.push(node);
            }
        });
        found
    }

    /// Its text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.walk(&mut |_, node| {
            if node.kind == "text" {
                text.push_str(&node.value);
            }
        });
        text
    }
}

/// The tree of `markdown` on github.com, before anything is sanitised.
pub(crate) fn rendered(markdown: &str) -> Node {
    static RENDERER: LazyLock<Mutex<Program>> =
        LazyLock::new(|| Mutex::new(Program::start("markdown.mjs")));
    let mut renderer = RENDERER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    renderer.ask(markdown)
}
