//! Files of a crate do not import each other in a circle: whoever reads one file can read those that
//! it imports, and is never sent back.
//!
//! An import is a `use` of what a file defines, whether named through the module that defines it or
//! through one that passes it on. Passing on (`pub use`) is no import, and neither is a path in the
//! code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use crate::rust_files;

/// The path of a module in its crate.
type Module = Vec<String>;

/// The modules of one crate, each a file.
struct Modules(BTreeMap<Module, Uses>);

/// The `use` declarations of a module.
#[derive(Default)]
struct Uses {
    /// The imported paths.
    imported: Vec<Vec<String>>,
    /// The paths of all names that the module has from elsewhere, by name.
    names: BTreeMap<String, Vec<String>>,
}

impl Modules {
    fn of(src: &Path) -> Self {
        let files = rust_files::below([src.to_owned()]);
        let modules = files.iter().filter_map(|file| {
            let within = file.strip_prefix(src).unwrap().with_extension("");
            let mut module: Module =
                within.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            if module.iter().any(|part| part.ends_with("tests") || part == "bin") {
                return None;
            }
            module.pop_if(|last| last == "lib");
            Some((module, Uses::in_code(&fs::read_to_string(file).unwrap())))
        });
        Self(modules.collect())
    }

    /// The module that defines what is imported by a path in `at`; `None` if it is of another crate.
    fn definer(&self, at: &[String], path: &[String], depth: u32) -> Option<Module> {
        let (mut module, mut rest) = match path.first()?.as_str() {
            "crate" => (Vec::new(), &path[1..]),
            "self" => (at.to_vec(), &path[1..]),
            "super" => (at.split_last()?.1.to_vec(), &path[1..]),
            first if self.0.contains_key(&[at, &[first.to_owned()]].concat()) => {
                (at.to_vec(), path)
            }
            _ => return None,
        };
        while let Some((first, after)) = rest.split_first() {
            let child = [&module[..], std::slice::from_ref(first)].concat();
            if first == "super" {
                module.pop();
            } else if self.0.contains_key(&child) {
                module = child;
            } else {
                let passed_on = self.0.get(&module).and_then(|uses| uses.names.get(first));
                return match passed_on.filter(|_| depth > 0) {
                    Some(from) => self.definer(&module, from, depth - 1),
                    None => Some(module),
                };
            }
            rest = after;
        }
        Some(module)
    }

    /// The modules that each one imports from.
    fn imports(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let mut imports = BTreeMap::new();
        for (module, uses) in &self.0 {
            let from = uses.imported.iter().filter_map(|path| self.definer(module, path, 8));
            imports.insert(module, from.filter(|from| from != module).collect());
        }
        imports
    }

    /// The modules that import each other in circles: what is left after removing, again and again,
    /// those that import none of the others or that none of the others imports.
    fn in_circles(&self) -> Vec<String> {
        let mut left = self.imports();
        loop {
            let before = left.len();
            let modules: BTreeSet<Module> = left.keys().map(|it| (*it).clone()).collect();
            left.retain(|_, from| from.iter().any(|it| modules.contains(it)));
            let imported: BTreeSet<Module> = left.values().flatten().cloned().collect();
            left.retain(|module, _| imported.contains(*module));
            if left.len() == before {
                return left.keys().map(|module| module.join("::")).collect();
            }
        }
    }
}

impl Uses {
    fn in_code(code: &str) -> Self {
        let code = code.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let mut uses = Self::default();
        let mut lines = code.lines();
        while let Some(line) = lines.next() {
            let Some((visibility, first)) = line.split_once("use ") else { continue };
            let is_private = visibility.is_empty();
            if !(is_private || visibility.starts_with("pub") && visibility.ends_with(' ')) {
                continue;
            }
            let mut declared = first.to_owned();
            while !declared.contains(';') {
                declared.push_str(lines.next().unwrap().trim());
            }
            let mut paths = Vec::new();
            expand(declared.split(';').next().unwrap(), &[], &mut paths);
            for (path, name) in paths {
                uses.names.insert(name, path.clone());
                if is_private {
                    uses.imported.push(path);
                }
            }
        }
        uses
    }
}

/// The paths of a `use` tree, each with the name that it gets.
fn expand(tree: &str, before: &[String], paths: &mut Vec<(Vec<String>, String)>) {
    let (start, group) = match tree.split_once('{') {
        Some((start, group)) => (start.trim_end_matches("::"), group.strip_suffix('}')),
        None => (tree, None),
    };
    let (start, renamed) = start.split_once(" as ").map_or((start, None), |(a, b)| (a, Some(b)));
    let parts = start.split("::").map(str::trim).filter(|part| !part.is_empty());
    let mut path: Vec<String> = before.iter().cloned().chain(parts.map(str::to_owned)).collect();
    if let Some(group) = group {
        let (mut depth, mut from) = (0, 0);
        for (at, character) in group.char_indices().chain([(group.len(), ',')]) {
            match character {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 0 => {
                    let part = group[from..at].trim();
                    if !part.is_empty() {
                        expand(part, &path, paths);
                    }
                    from = at + 1;
                }
                _ => {}
            }
        }
        return;
    }
    // `{self}` names the module before it.
    path.pop_if(|last| last == "self" && !before.is_empty());
    if let Some(last) = path.last().cloned() {
        paths.push((path, renamed.map_or(last, str::to_owned)));
    }
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let crates = fs::read_dir(root.join("crates")).unwrap();
    let mut sources: Vec<_> = crates.map(|it| it.unwrap().path().join("src")).collect();
    sources.push(root.join("src"));
    let mut imports = 0;
    for src in sources {
        let modules = Modules::of(&src);
        imports += modules.imports().values().map(BTreeSet::len).sum::<usize>();
        assert_eq!(modules.in_circles(), [""; 0], "{}", src.display());
    }
    assert!(imports > 1_500, "only {imports} imports are read");
}

#[test]
fn what_is_passed_on_is_imported_from_where_it_is_defined() {
    let code = [
        ("", "mod a;\npub use a::{One, b::Two as Three};\n"),
        ("a", "mod b;\nuse b::Two;\nuse std::fmt;\n"),
        ("a b", "use crate::{One,\n    a};\nuse super::super::Three;\n"),
        ("c", "pub(crate) use crate::a::b::{self, Two};\nuse self::d::D;\n"),
        ("c d", "use super::Two;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n"),
    ];
    let module = |path: &str| -> Module { path.split_whitespace().map(str::to_owned).collect() };
    let modules = Modules(code.map(|(path, code)| (module(path), Uses::in_code(code))).into());
    let imports = modules.imports();
    let of = |path: &str| imports[&module(path)].iter().map(|it| it.join(" ")).collect::<Vec<_>>();
    assert_eq!(
        ["", "a", "a b", "c", "c d"].map(of),
        [
            vec![],
            vec!["a b".to_owned()],
            vec!["a".to_owned()],
            vec!["c d".to_owned()],
            vec!["a b".to_owned()],
        ]
    );
    assert_eq!(modules.in_circles(), ["a", "a::b"]);
}
