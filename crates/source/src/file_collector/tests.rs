//! Walks through sketched folders, and their limits.

use super::*;

/// Folders whose contents are written `a.yaml sub/ b.yml@link`, by the folder's path.
struct Sketch(Vec<(&'static str, &'static str)>);

impl Tree for Sketch {
    type Folder = String;
    type File = String;

    fn list(&self, folder: &String, _path: &str) -> Result<Vec<Entry<Self>>, Error> {
        let listed = self.0.iter().find(|(path, _)| path == folder);
        let names = listed.map_or("", |(_, names)| names).split_whitespace();
        Ok(names.map(|name| Self::entry(folder, name)).collect())
    }

    fn load(&self, file: &String, path: &str) -> Result<Vec<u8>, Error> {
        match file.as_str() {
            "huge.yaml" => Err(Error::TooLarge { path: path.to_owned(), limit: FILE_LIMIT }),
            "large.yaml" => Ok(vec![b'x'; FILE_LIMIT + 1]),
            "large-wanted.yaml" => Ok(b"wanted".repeat(FILE_LIMIT / 6 + 1)),
            "other.yaml" | "same-a.yaml" => Ok(b"something else".to_vec()),
            "lfs.yaml" => Ok(b"version https://git-lfs.github.com/spec/v1\noid wanted".to_vec()),
            _ => Ok(b"wanted".to_vec()),
        }
    }

    fn identity(&self, _file: &String, path: &str) -> String {
        path.to_owned()
    }

    fn content_id(&self, file: &String) -> Option<ContentId> {
        let same = file.strip_prefix("same-")?;
        Some([*same.as_bytes().first()?; 20])
    }

    fn may_lead_to_folder(&self, link: &String, _path: &str) -> bool {
        link == "folder"
    }
}

impl Sketch {
    fn entry(folder: &str, name: &str) -> Entry<Self> {
        let (name, kind) = name.split_once('@').unwrap_or((name, "file"));
        let (name, item) = match (name.strip_suffix('/'), kind) {
            (Some(name), _) => (name, Item::Folder(join(folder, name))),
            (None, "link" | "folder") => (name, Item::Symlink(kind.to_owned())),
            (None, "module") => (name, Item::Submodule),
            (None, "pipe") => (name, Item::Special),
            (None, _) => (name, Item::File(name.to_owned())),
        };
        Entry { name: name.to_owned(), item }
    }
}

fn wanted(bytes: &[u8]) -> bool {
    bytes.windows(6).any(|six| six == b"wanted")
}

fn walk(tree: Vec<(&'static str, &'static str)>, limits: Limits) -> Result<Read, Error> {
    let mut gather = FileCollector { limits, ..FileCollector::new(&wanted) };
    gather.folder(&Sketch(tree), String::new(), "", true)?;
    gather.finish(|| "the sketch".to_owned())
}

fn paths(files: &[ManifestFile]) -> Vec<&str> {
    files.iter().map(|file| file.path.as_ref()).collect()
}

#[test]
fn only_manifest_names_are_read_in_order() {
    let tree = vec![
        ("", "b.yaml sub/ a.yml c.json README.md x.YAML y.yaml.bak .yaml"),
        ("sub", "d.yaml deeper/"),
        ("sub/deeper", "e.json"),
    ];
    let read = walk(tree, LIMITS).unwrap();
    let expected = [".yaml", "a.yml", "b.yaml", "c.json", "sub/d.yaml", "sub/deeper/e.json"];
    assert_eq!(paths(&read.files), expected);
}

#[test]
fn without_recursion_only_the_folder_itself() {
    let tree = Sketch(vec![("", "a.yaml sub/"), ("sub", "b.yaml")]);
    let mut gather = FileCollector::new(&wanted);
    gather.folder(&tree, String::new(), "", false).unwrap();
    let read = gather.finish(String::new).unwrap();
    assert_eq!(paths(&read.files), ["a.yaml"]);
}

#[test]
fn folders_that_need_rendering_are_skipped_completely() {
    for (marker, renderer) in [
        ("Chart.yaml", Renderer::Helm),
        ("kustomization.yaml", Renderer::Kustomize),
        ("kustomization.yml", Renderer::Kustomize),
        ("Kustomization", Renderer::Kustomize),
        ("Chart.yaml@link", Renderer::Helm),
    ] {
        let inside: &'static str =
            Box::leak(format!("{marker} a.yaml huge.yaml large.yaml l.yaml@link sub/").into());
        let tree = vec![
            ("", "app/ z.yaml"),
            ("app", inside),
            // A kustomization inside does not count twice.
            ("app/sub", "b.yaml other.yaml kustomization.yaml"),
        ];
        let read = walk(tree, LIMITS).unwrap();
        assert_eq!(paths(&read.files), ["z.yaml"], "{marker}");
        let [folder] = read.unrendered.as_slice() else { panic!("{marker}: one folder") };
        assert_eq!((folder.renderer, folder.path.as_ref()), (renderer, "app"), "{marker}");
        let left_out = paths(&folder.files);
        assert!(left_out.contains(&"app/a.yaml"), "{marker}: {left_out:?}");
        assert!(left_out.contains(&"app/sub/b.yaml"), "{marker}: {left_out:?}");
        assert!(!left_out.contains(&"app/sub/other.yaml"), "{marker}: {left_out:?}");
        assert_eq!(read.warnings, [], "{marker}");
    }
}

#[test]
fn a_folder_named_twice_is_skipped_once() {
    let tree = Sketch(vec![("", "Chart.yaml a.yaml")]);
    let mut gather = FileCollector::new(&wanted);
    gather.folder(&tree, String::new(), "", true).unwrap();
    gather.folder(&tree, String::new(), "", true).unwrap();
    let read = gather.finish(String::new).unwrap();
    assert_eq!(read.unrendered.len(), 1);
    assert_eq!(read.unrendered[0].path.as_ref(), ".");
}

#[test]
fn skipped_links_and_devices_are_warned_about() {
    let tree = vec![(
        "",
        "a.yaml l.yaml@link file@link folder@folder vendor@module p.yaml@pipe socket@pipe",
    )];
    let read = walk(tree, LIMITS).unwrap();
    let expected = [
        Warning::Symlink { path: "folder".into() },
        Warning::Symlink { path: "l.yaml".into() },
        Warning::Special { path: "p.yaml".into() },
        Warning::Submodule { path: "vendor".into() },
    ];
    assert_eq!(read.warnings, expected);
    let texts: Vec<_> = read.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        [
            "`folder` is a symbolic link and was not read",
            "`l.yaml` is a symbolic link and was not read",
            "`p.yaml` is not a regular file and was not read",
            "`vendor` is a submodule and was not read",
        ]
    );
}

/// Links beyond the limit are not looked up, so they may lead to folders.
#[test]
fn only_some_links_are_looked_up() {
    let tree = vec![("", "a.yaml x@link y@link z@link")];
    let read = walk(tree, Limits { links: 2, ..LIMITS }).unwrap();
    assert_eq!(read.warnings, [Warning::Symlink { path: "z".into() }]);
}

#[test]
fn a_file_that_was_seen_is_not_read_again() {
    let tree = Sketch(vec![("", "a.yaml b.yaml")]);
    let mut gather = FileCollector::new(&wanted);
    gather.file(&tree, &"a.yaml".to_owned(), "a.yaml", Reached::Found).unwrap();
    gather.folder(&tree, String::new(), "", true).unwrap();
    let read = gather.finish(String::new).unwrap();
    assert_eq!(paths(&read.files), ["a.yaml", "b.yaml"]);
}

#[test]
fn unwanted_files_are_counted_however_large() {
    let read = walk(vec![("", "other.yaml large.yaml")], LIMITS).unwrap();
    assert_eq!((read.unwanted, read.files.len()), (2, 0));
}

#[test]
fn a_pointer_is_not_its_content() {
    let read = walk(vec![("", "lfs.yaml")], LIMITS).unwrap();
    assert_eq!(read.warnings, [Warning::LfsPointer { path: "lfs.yaml".into() }]);
}

#[test]
fn limits_end_the_walk() {
    for (case, tree, limits, expected) in [
        (
            "a wanted file",
            vec![("", "large-wanted.yaml")],
            LIMITS,
            "`large-wanted.yaml` is larger than 3 MiB",
        ),
        (
            "a file too large to search",
            vec![("", "huge.yaml")],
            LIMITS,
            "`huge.yaml` is larger than 3 MiB",
        ),
        (
            "files, wanted or not",
            vec![("", "a.yaml b.yaml other.yaml")],
            Limits { files: 2, ..LIMITS },
            "more than 2 manifest files",
        ),
        (
            "entries of any kind",
            vec![("", "a.yaml b/"), ("b", "c d")],
            Limits { entries: 3, ..LIMITS },
            "more than 3 files and folders",
        ),
        (
            "bytes, those left out included",
            vec![("", "a.yaml b/"), ("b", "Chart.yaml")],
            Limits { bytes: 11, ..LIMITS },
            "more than 0 MiB of manifests",
        ),
        (
            "bytes looked at, each content once",
            vec![
                ("", "other.yaml same-a.yaml b/"),
                ("b", "same-a.yaml c/"),
                ("b/c", "Chart.yaml same-a.yaml other.yaml"),
            ],
            Limits { searched_bytes: 36, ..LIMITS },
            "more than 0 MiB of manifest files to search",
        ),
        (
            "depth",
            vec![("", "a/"), ("a", "b/"), ("a/b", "c/")],
            Limits { depth: 2, ..LIMITS },
            "`a/b/c` is nested more than 2 folders deep",
        ),
        (
            "nothing",
            vec![("", "README.md l.yaml@link")],
            LIMITS,
            "no .yaml, .yml or .json file in the sketch; symbolic links were not followed",
        ),
    ] {
        assert_eq!(walk(tree, limits).unwrap_err().to_string(), expected, "{case}");
    }
}

#[test]
fn known_content_is_not_searched_again() {
    let tree =
        vec![("", "same-a.yaml b/"), ("b", "same-a.yaml c/"), ("b/c", "Chart.yaml same-a.yaml")];
    let read = walk(tree, Limits { searched_bytes: 20, ..LIMITS }).unwrap();
    assert_eq!((read.unwanted, read.files.len()), (2, 0));
}
