//! Errors: a kustomization cannot be rendered.

use std::io;
use std::time::Duration;

use crate::kustomize::problem::Problem as KustomizeProblem;
/// A kustomization cannot be rendered.
#[derive(Debug, thiserror::Error)]
pub enum KustomizeError {
    // Rendering.
    /// `-k` on a folder without a kustomization, or with more than one.
    #[error("`{path}` is not a folder with exactly one kustomization")]
    NotAKustomization {
        /// Path from the top of the repository.
        path: String,
    },
    /// A kustomization that is rejected before kustomize runs.
    #[error("`{path}` is not rendered: {problem}")]
    Problem {
        /// Path of the kustomization from the top of the repository.
        path: String,
        /// The problem.
        problem: KustomizeProblem,
    },
    /// Neither kustomize nor kubectl is installed.
    #[error("neither `kustomize` nor `kubectl` is installed; -k needs one of them")]
    Missing,
    /// The program does not start, or its temporary folder cannot be created.
    #[error("cannot run `{program}`")]
    Start {
        /// Name or path of the program.
        program: String,
        /// The cause.
        source: io::Error,
    },
    /// Kustomize was killed after its timeout.
    #[error("rendering `{folder}` took more than {} s", after.as_secs())]
    Timeout {
        /// The folder to render.
        folder: String,
        /// The timeout.
        after: Duration,
    },
    /// Kustomize printed more than the limit.
    #[error("the rendered output of `{folder}` is larger than {} MiB", limit >> 20)]
    Output {
        /// The folder to render.
        folder: String,
        /// The limit, in bytes.
        limit: usize,
    },
    /// Kustomize failed.
    #[error("cannot render `{folder}`: {output}")]
    Failed {
        /// The folder to render.
        folder: String,
        /// Last lines of its output.
        output: String,
    },
}
