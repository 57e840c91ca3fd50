//! Why a kustomization is not rendered.

/// Limit of the depth to which folders name folders.
pub(super) const DEEPEST: usize = 32;

/// A problem of a kustomization.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The file is not exactly one YAML mapping.
    #[error("{0}")]
    Syntax(String),
    /// An unknown field.
    #[error("unknown field `{field}`; it could name files, URLs or programs")]
    Unknown {
        /// Name of the field.
        field: String,
    },
    /// A field with a value of the wrong type.
    #[error("the field `{field}` has the wrong type")]
    Unexpected {
        /// Name of the field.
        field: String,
    },
    /// A field for plugins, functions or charts.
    #[error("`{field}` makes kustomize run programs")]
    Program {
        /// Name of the field.
        field: String,
    },
    /// A URL or an absolute path.
    #[error("`{path}` in `{field}` is not a relative path")]
    NotRelative {
        /// The path as written.
        path: String,
        /// Name of the field.
        field: String,
    },
    /// A path outside of the repository.
    #[error("`{path}` in `{field}` is outside the repository")]
    Outside {
        /// The path as written.
        path: String,
        /// Name of the field.
        field: String,
    },
    /// The path does not exist in this commit, or has the wrong type.
    #[error("`{path}` in `{field}` is not {want} in the commit")]
    NotThere {
        /// The path as written.
        path: String,
        /// Name of the field.
        field: String,
        /// The required type.
        want: &'static str,
    },
    /// A path to the kustomization file instead of its folder.
    #[error("`{path}` in `{field}` is a kustomization; name its folder instead")]
    AsFile {
        /// The path as written.
        path: String,
        /// Name of the field.
        field: String,
    },
    /// A folder that includes itself through others.
    #[error("it includes itself through `{folder}`")]
    Cycle {
        /// Path of the folder.
        folder: String,
    },
    /// More folders to render than the limit.
    #[error("it renders more than {limit} folders, or nests folders {deepest} deep", deepest = DEEPEST)]
    TooMany {
        /// The limit.
        limit: usize,
    },
}
