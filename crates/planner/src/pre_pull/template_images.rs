//! The images of a pod template.

use serde_json::Value;

use daemonset::model::short_digest;

/// The images that the pods of a template need, each once, in the order in which a kubelet pulls
/// them: those of init containers first. Volumes of images are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateImages(Vec<ImageToPull>);

/// An image, and when it is pulled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageToPull {
    /// As in the template.
    pub image: String,
    /// `imagePullPolicy`; `None` is the server's default.
    pub policy: Option<String>,
}

/// The policy that pulls an image each time.
const ALWAYS: &str = "Always";

impl TemplateImages {
    /// The images of a template.
    pub fn of(template: &Value) -> Self {
        let containers = ["initContainers", "containers"].into_iter();
        let containers = containers.filter_map(|list| template["spec"][list].as_array()).flatten();
        let mut images: Vec<ImageToPull> = Vec::new();
        for container in containers {
            let Some(image) = container["image"].as_str().filter(|image| !image.is_empty()) else {
                continue;
            };
            let policy = container["imagePullPolicy"].as_str().map(str::to_owned);
            match images.iter_mut().find(|known| known.image == image) {
                None => images.push(ImageToPull { image: image.to_owned(), policy }),
                Some(known) if policy.as_deref() == Some(ALWAYS) => known.policy = policy,
                Some(_) => {}
            }
        }
        Self(images)
    }

    /// Each image.
    pub fn iter(&self) -> impl Iterator<Item = &ImageToPull> {
        self.0.iter()
    }

    /// Their number.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether a node that runs a pod with the images of `other` has these too. An image that is
    /// pulled each time may have changed.
    pub fn are_among(&self, other: &Self) -> bool {
        self.0.iter().all(|it| {
            it.policy.as_deref() != Some(ALWAYS) && other.0.iter().any(|had| had.image == it.image)
        })
    }

    /// A digest of the images and their policies.
    pub fn digest(&self) -> String {
        let parts =
            self.0.iter().flat_map(|it| [it.image.as_str(), it.policy.as_deref().unwrap_or("")]);
        short_digest(&parts.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Images as `NAME` or `NAME!` (always pulled), init containers first.
    fn images(init: &[&str], others: &[&str]) -> TemplateImages {
        let containers = |names: &[&str]| -> Value {
            let one = |name: &&str| match name.strip_suffix('!') {
                Some(name) => json!({"image": name, "imagePullPolicy": "Always"}),
                None => json!({"image": name, "imagePullPolicy": "IfNotPresent"}),
            };
            names.iter().map(one).collect()
        };
        let spec = json!({"initContainers": containers(init), "containers": containers(others)});
        TemplateImages::of(&json!({"spec": spec}))
    }

    #[test]
    fn each_image_occurs_once_and_those_of_init_containers_come_first() {
        let names = |images: TemplateImages| -> Vec<String> {
            images.iter().map(|it| it.image.clone()).collect()
        };
        assert_eq!(
            names(images(&["setup"], &["agent", "proxy", "agent"])),
            ["setup", "agent", "proxy"]
        );
        assert_eq!(names(images(&["agent"], &["agent"])), ["agent"]);
        assert_eq!(
            names(TemplateImages::of(&json!({"spec": {"containers": [{"name": "a"}]}}))),
            [""; 0]
        );
        let policies: Vec<_> =
            images(&["agent"], &["agent!"]).iter().map(|it| it.policy.clone()).collect();
        assert_eq!(policies, [Some(ALWAYS.to_owned())], "the stricter policy counts");
    }

    #[test]
    fn a_node_needs_images_that_its_pod_does_not_have_or_that_are_always_pulled() {
        for (target, runs, is_there) in [
            (images(&[], &["a:1"]), images(&[], &["a:1"]), true),
            (images(&[], &["a:1"]), images(&["a:1"], &["b:1"]), true),
            (images(&[], &["a:2"]), images(&[], &["a:1"]), false),
            (images(&["s:1"], &["a:1"]), images(&[], &["a:1"]), false),
            (images(&[], &["a:1!"]), images(&[], &["a:1!"]), false),
        ] {
            assert_eq!(target.are_among(&runs), is_there, "{target:?} among {runs:?}");
        }
    }

    #[test]
    fn the_digest_covers_images_policies_and_their_borders() {
        let all = [images(&[], &["a", "b"]), images(&[], &["ab"]), images(&[], &["a", "b!"])];
        let different: std::collections::BTreeSet<String> =
            all.iter().map(TemplateImages::digest).collect();
        assert_eq!(different.len(), all.len());
    }
}
