//! Detects folders that must be rendered before they are manifests, and prints the command that
//! renders them.

use std::fmt;
use std::sync::Arc;

use super::tree::{Entry, Tree};
use daemonset::model::ManifestFile;

/// File names of a kustomization; a folder may have one of them.
pub(super) const KUSTOMIZATION_NAMES: [&str; 3] =
    ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// A folder whose files are not complete objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unrendered {
    /// The program that renders the folder.
    pub renderer: Renderer,
    /// Path of the folder; `.` for the top.
    pub path: Arc<str>,
    /// Its wanted files, with sub-folders, so that the caller can report what is skipped.
    pub files: Vec<ManifestFile>,
}

/// The program that renders a folder to complete objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renderer {
    /// Helm, for a folder with a `Chart.yaml`: templates are not YAML.
    Helm,
    /// Kustomize, for a folder with a kustomization: patches are not complete objects.
    Kustomize,
}

impl Renderer {
    /// The renderer of a folder with these entries, if it needs one.
    pub(super) fn of<T: Tree>(entries: &[Entry<T>]) -> Option<Self> {
        let has = |name: &str| entries.iter().any(|entry| entry.name == name);
        if has("Chart.yaml") {
            Some(Self::Helm)
        } else if KUSTOMIZATION_NAMES.into_iter().any(has) {
            Some(Self::Kustomize)
        } else {
            None
        }
    }
}

impl Unrendered {
    /// A shell command that prints the folder's complete objects.
    pub fn render_command(&self) -> String {
        // A name from a repository must not become a command when the user pastes this.
        let is_plain = self.path.starts_with(['/', '.']);
        let folder = if is_plain { self.path.to_string() } else { format!("./{}", self.path) };
        let folder = shlex::try_quote(&folder).unwrap_or("FOLDER".into());
        match self.renderer {
            Renderer::Helm => format!("helm template {folder}"),
            Renderer::Kustomize => format!("kubectl kustomize {folder}"),
        }
    }
}

impl fmt::Display for Unrendered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.renderer {
            Renderer::Helm => "a Helm chart",
            Renderer::Kustomize => "a kustomization",
        };
        write!(f, "`{}` is {what} and was not read", self.path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_to_paste_is_harmless() {
        for (renderer, path, expected) in [
            (Renderer::Helm, "charts/app", "helm template ./charts/app"),
            (Renderer::Helm, "/srv/app", "helm template /srv/app"),
            (Renderer::Helm, ".", "helm template ."),
            (Renderer::Kustomize, "a b", "kubectl kustomize './a b'"),
            (Renderer::Kustomize, "$(id)", "kubectl kustomize './$(id)'"),
            (Renderer::Kustomize, "--help", "kubectl kustomize ./--help"),
        ] {
            let folder = Unrendered { renderer, path: path.into(), files: Vec::new() };
            assert_eq!(folder.render_command(), expected);
        }
    }
}
