//! Markdown as github.com shows it: rendered by packages from npm, in one Node.js process for all
//! tests. They are installed into the target folder on first use, as `tests/web` pins them.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{LazyLock, Mutex};

use serde::Deserialize;

/// A node of the tree that a browser would make.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Node {
    /// `root`, `element`, `text` or `comment`.
    #[serde(rename = "type")]
    pub(crate) kind: String,
    /// Of an element.
    #[serde(default)]
    pub(crate) tag_name: String,
    /// Of an element.
    #[serde(default)]
    pub(crate) properties: serde_json::Map<String, serde_json::Value>,
    /// Of a text or a comment.
    #[serde(default)]
    pub(crate) value: String,
    #[serde(default)]
    pub(crate) children: Vec<Node>,
}

impl Node {
    /// This node and all below it, in order, each with the tags that it is in.
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

    /// The text in it.
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

/// What `markdown` looks like on github.com, before anything is sanitised.
pub(crate) fn rendered(markdown: &str) -> Node {
    static RENDERER: LazyLock<Mutex<Renderer>> = LazyLock::new(|| Mutex::new(Renderer::start()));
    let mut renderer = RENDERER.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    renderer.render(markdown)
}

struct Renderer {
    node: Child,
    answers: BufReader<std::process::ChildStdout>,
}

impl Renderer {
    fn start() -> Self {
        let folder = installed();
        let mut node = Command::new("node")
            .arg("markdown.mjs")
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("these tests need Node.js 20 or later: {error}"));
        let answers = BufReader::new(node.stdout.take().unwrap());
        Self { node, answers }
    }

    fn render(&mut self, markdown: &str) -> Node {
        let line = serde_json::to_string(markdown).unwrap();
        writeln!(self.node.stdin.as_mut().unwrap(), "{line}").expect("the renderer is gone");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer).unwrap_or_else(|error| panic!("{error}: {answer:?}"))
    }
}

/// The folder with the packages. What else pins them is in its name.
fn installed() -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web");
    let files = ["package.json", "package-lock.json", "markdown.mjs"];
    let mut hash = DefaultHasher::new();
    for file in files {
        fs::read(source.join(file)).unwrap().hash(&mut hash);
    }
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tmp.join(format!("web-{:016x}", hash.finish()));
    if !folder.exists() {
        let fresh = tempfile::tempdir_in(tmp).unwrap();
        for file in files {
            fs::copy(source.join(file), fresh.path().join(file)).unwrap();
        }
        let done = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(fresh.path())
            .output()
            .unwrap_or_else(|error| {
                panic!("these tests need npm, which comes with Node.js: {error}")
            });
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "npm could not install the packages of tests/web: {said}");
        // Another run may have been quicker; its folder is as good.
        let _ = fs::rename(fresh.path(), &folder);
    }
    folder
}
