//! The language of the project: words and sentences that were replaced by Kubernetes' own terms
//! (`docs/src/glossary.md` has the rest) do not come back into help, messages or documentation.

use std::fs;
use std::path::{Path, PathBuf};

use testkit::sandbox::Sandbox;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Replaced words and sentences, in lower case.
const REPLACED: [&str; 48] = [
    "parked",
    "parking",
    "ledger",
    "ledgers",
    "keeper",
    "take-over",
    "takeover",
    "on hold",
    "is held by ds-apply",
    "give back the",
    "given back",
    "giving the declared strategy back",
    "go on",
    "goes on",
    "going on",
    "way back",
    "go back",
    "going back",
    "mend",
    "mends",
    "does not heal",
    "lacks",
    "anew",
    "gravest",
    "nobody",
    "somebody",
    "stranger",
    "agreed to",
    "not agreed",
    "carried out",
    "carry out",
    "passed over",
    "budget taken",
    "older drift",
    "wait for good",
    "for good",
    "whole or not at all",
    "nothing comes back",
    "none may start",
    "is no quantity",
    "is no list",
    "how to tell what happens",
    "where all chance comes from",
    "as the system has it",
    "the cluster itself is as it was",
    "value not shown",
    "nobody can be asked",
    "not yet ready for",
];

/// The replaced words in a text, whatever its line breaks.
fn found(text: &str) -> Vec<&'static str> {
    let words: Vec<&str> = text.split_whitespace().filter(|it| *it != "\\").collect();
    let text = format!(" {} ", words.join(" ").to_lowercase());
    let is_word = |it: Option<char>| it.is_some_and(|it| it.is_alphanumeric() || it == '_');
    let occurs = |word: &&&str| {
        text.match_indices(**word).any(|(at, _)| {
            let after = &text[at + word.len()..];
            !is_word(text[..at].chars().next_back()) && !is_word(after.chars().next())
        })
    };
    REPLACED.iter().filter(occurs).copied().collect()
}

/// The string literals of a Rust file before its tests.
fn messages(code: &str) -> String {
    let (code, _tests) = code.split_once("#[cfg(test)]").unwrap_or((code, ""));
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n").replace("\\\"", "'").replace("'\"'", "''");
    code.split('"').skip(1).step_by(2).collect::<Vec<_>>().join("\n")
}

/// All files below a folder with this extension, but for those of tests.
fn files(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let (mut files, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(path) = open.pop() {
        if path.file_stem().is_some_and(|it| it == "tests") {
            continue;
        }
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|it| it == extension) {
            files.push(path);
        }
    }
    files
}

#[test]
fn replaced_words_are_found() {
    assert_eq!(found("it GOES\n    on, and a parked one"), ["parked", "goes on"]);
    assert_eq!(found("amend, forego one, sparked"), [""; 0]);
    let code = "fn it() { say(\"goes on \\\"here\\\"\") } // anew\n";
    assert_eq!(found(&messages(code)), ["goes on"]);
}

#[test]
fn messages_use_the_words_of_kubernetes() {
    let mut seen = 0;
    for path in ["src", "crates"].iter().flat_map(|it| files(&Path::new(ROOT).join(it), "rs")) {
        let text = messages(&fs::read_to_string(&path).unwrap());
        seen += text.lines().count();
        assert_eq!(found(&text), [""; 0], "{}", path.display());
    }
    assert!(seen > 5_000, "only {seen} messages: is this where they are?");
}

#[test]
fn documentation_uses_the_words_of_kubernetes() {
    let root = Path::new(ROOT);
    let pages = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "action.yml"];
    let folders = ["docs", "deploy", "examples", "schemas"];
    let mut paths: Vec<PathBuf> = pages.iter().map(|page| root.join(page)).collect();
    for extension in ["md", "yaml", "yml", "sh", "json"] {
        paths.extend(folders.iter().flat_map(|folder| files(&root.join(folder), extension)));
    }
    assert!(paths.len() > 30, "{paths:#?}");
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(found(&text), [""; 0], "{}", path.display());
    }
}

#[test]
fn help_uses_the_words_of_kubernetes() {
    let sandbox = Sandbox::new();
    let plan = ["", "plan", "diff", "drift", "explain", "history", "schema", "snapshot", "status"];
    let apply = ["", "apply", "approve", "can-i", "release", "roll", "undo", "unlock"];
    let helps =
        plan.iter().map(|command| (*command, sandbox.ds_plan(&format!("{command} --help"))));
    let applies =
        apply.iter().map(|command| (*command, sandbox.ds_apply(&format!("{command} --help"))));
    for (command, run) in helps.chain(applies) {
        assert_eq!(run.code, Some(0), "{run}");
        assert_eq!(found(&run.stdout), [""; 0], "{command}");
    }
}

/// A stranger should be able to learn them at one sitting.
#[test]
fn the_glossary_has_few_words() {
    let glossary = fs::read_to_string(Path::new(ROOT).join("docs/src/glossary.md")).unwrap();
    let rows = glossary.lines().filter(|line| line.starts_with("| ")).skip(1);
    let words: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
    assert!((20..=25).contains(&words.len()), "{} words: {words:?}", words.len());
    assert!(words.is_sorted_by_key(|word| word.to_lowercase()), "{words:?}");
}
