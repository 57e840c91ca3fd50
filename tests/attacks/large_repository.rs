//! Repositories of some hundred kilobytes that expand to terabytes, or to very many objects.

use std::time::Duration;

use git2::{ObjectType, Oid, Repository, Signature};

use crate::watched::Watched;
use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::Sandbox;

/// The time limit; these take seconds.
const HANG: Duration = Duration::from_mins(3);

/// A bare repository with one commit of one folder, built from raw entries.
struct Forge {
    sandbox: Sandbox,
    repository: Repository,
}

impl Forge {
    fn new() -> Self {
        let sandbox = Sandbox::with(&[("cluster.json", &cluster().to_string())]);
        let repository = Repository::init_bare(sandbox.path("repo.git")).unwrap();
        Self { sandbox, repository }
    }

    fn tree(&self, entries: impl IntoIterator<Item = (&'static str, String, Oid)>) -> Oid {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend([mode.as_bytes(), b" ", name.as_bytes(), b"\0", id.as_bytes()].concat());
        }
        self.repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap()
    }

    fn agent(&self) -> (&'static str, String, Oid) {
        ("100644", "agent.yaml".to_owned(), self.repository.blob(AGENT.as_bytes()).unwrap())
    }

    /// Plans the folder.
    fn plan(&self, top: Oid) -> Watched {
        let author = Signature::now("Test", "test@example.com").unwrap();
        let tree = self.repository.find_tree(top).unwrap();
        let head = self.repository.find_reference("HEAD").unwrap();
        let branch = head.symbolic_target().unwrap().unwrap();
        self.repository.commit(Some(branch), &author, &author, "x", &tree, &[]).unwrap();
        let line = "--repo repo.git --snapshot cluster.json -o name";
        Watched::run(self.sandbox.ds_plan_command(line), HANG)
    }
}

#[test]
fn many_paths_to_one_large_file_are_read_once() {
    for rendered in [false, true] {
        let forge = Forge::new();
        let large = forge.repository.blob(&vec![b'x'; 63 << 20]).unwrap();
        let name = |at: usize| format!("{at:03}.yaml");
        let mut inner: Vec<_> = (0..300).map(|at| ("100644", name(at), large)).collect();
        if rendered {
            inner.push(("100644", "Chart.yaml".to_owned(), forge.agent().2));
        }
        let inner = forge.tree(inner);
        let outer = (0..300).map(|at| ("40000", format!("{at:03}"), inner));
        let run = forge.plan(forge.tree(outer.chain([forge.agent()])));
        run.expect(0, 400);
        assert_eq!(run.stdout, "logging/agent\n");
    }
}

#[test]
fn many_links_are_reported_together() {
    for (mode, kind) in [("120000", "symbolic link"), ("160000", "submodule")] {
        let forge = Forge::new();
        let target = forge.repository.blob(b"target").unwrap();
        let links = (0..90_000).map(|at| (mode, format!("l{at:05}.yaml"), target));
        let run = forge.plan(forge.tree([forge.agent()].into_iter().chain(links)));
        run.expect(0, 300);
        run.expect_few_words();
        assert!(run.stderr.contains("`l00000.yaml`"), "{run}");
        assert!(run.stderr.contains(&format!("{kind}s were not read")), "{run}");
    }
}
