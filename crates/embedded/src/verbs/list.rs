//! Lists objects of a kind, in pages of one version (upstream: `limit`, `continue`).

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Verbs;
use crate::selector::Selector;
use crate::{Expired, Kind, Object, Reason, Status, Store};

/// Options of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListOptions {
    /// Selector of the objects.
    pub(crate) selector: Selector,
    /// Size of a page; 0 for all objects.
    pub(crate) limit: usize,
    /// The `continue` token of the previous page; empty for the first.
    pub(crate) token: String,
}

/// One page of a list.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Objects of the page.
    pub(crate) items: Vec<Arc<Object>>,
    /// Version of the list.
    pub(crate) version: u64,
    /// The `continue` token of the next page; empty on the last.
    pub(crate) token: String,
    /// Number of objects after this page, if it is known.
    pub(crate) remaining: Option<usize>,
}

/// The start of a page, and its version.
struct Start {
    version: u64,
    /// Key of the last object of the previous page.
    after: Option<String>,
}

impl Verbs<'_> {
    /// One page of the objects of a kind, of one namespace or of all.
    ///
    /// # Errors
    /// 410 if the version of the first page has expired, 400 for invalid options.
    pub(crate) fn list(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Page, Status> {
        list(self.store, kind, namespace, options)
    }
}

/// Lists the objects of a store.
pub(crate) fn list(
    store: &Store,
    kind: Kind,
    namespace: Option<&str>,
    options: &ListOptions,
) -> Result<Page, Status> {
    let start = start(store, options)?;
    let after = |key: &str| start.after.as_ref().is_none_or(|after| key > after.as_str());
    let wanted =
        |object: &&Arc<Object>| after(object.key().as_str()) && options.selector.selects(object);
    let room = if options.limit == 0 { usize::MAX } else { options.limit };
    let (mut items, more): (Vec<Arc<Object>>, usize) = if start.version == store.version() {
        take(store.objects(kind, namespace).filter(wanted), room)
    } else {
        let then = store.objects_as_of(kind, namespace, start.version);
        let then = then.map_err(|_: Expired| expired_token(store, &start, options))?;
        take(then.values().filter(wanted), room)
    };
    items.shrink_to_fit();
    let token = match items.last() {
        Some(last) if more > 0 => token(start.version, last.key().as_str()),
        _ => String::new(),
    };
    // With a selector the remaining objects are not counted, as on the server.
    let countable = more > 0 && options.selector.is_everything();
    let remaining = countable.then_some(more);
    Ok(Page { items, version: start.version, token, remaining })
}

/// The first `room` objects, and the number of the remaining ones.
fn take<'o>(
    mut objects: impl Iterator<Item = &'o Arc<Object>>,
    room: usize,
) -> (Vec<Arc<Object>>, usize) {
    let items = objects.by_ref().take(room).map(Arc::clone).collect();
    (items, objects.count())
}

fn start(store: &Store, options: &ListOptions) -> Result<Start, Status> {
    if !options.token.is_empty() {
        return read_token(&options.token).ok_or_else(|| {
            let why = "continue key is not valid: illegal base64 data at input byte 0";
            Status::bad_request(format!("invalid continue token: {why}"))
        });
    }
    Ok(Start { version: store.version(), after: None })
}

fn token(version: u64, last: &str) -> String {
    // The smallest key after the last one.
    let token = json!({"v": "meta.k8s.io/v1", "rv": version, "start": format!("{last}\0")});
    BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
}

fn read_token(token: &str) -> Option<Start> {
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).ok()?;
    let token: Value = serde_json::from_slice(&bytes).ok()?;
    let start = token["start"].as_str()?;
    Some(Start {
        version: token["rv"].as_u64()?,
        after: Some(start.strip_suffix('\0').unwrap_or(start).to_owned()),
    })
}

fn expired_token(store: &Store, start: &Start, options: &ListOptions) -> Status {
    if options.token.is_empty() {
        return too_old(start.version, store.version());
    }
    Status::new(
        Reason::Expired,
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted \
         between the time the first chunk was returned and now may show up in the list.",
    )
}

/// The error for a version that is not a number, which upstream reports as a server error.
pub(crate) fn unparsable_version(version: &str) -> Status {
    let why = format!(
        "resourceVersion: Invalid value: {version:?}: strconv.ParseUint: parsing {version:?}: \
         invalid syntax"
    );
    Status::new(Reason::Unknown, why)
}

/// The error for a version that has expired.
pub(crate) fn too_old(wanted: u64, oldest: u64) -> Status {
    Status::new(Reason::Expired, format!("too old resource version: {wanted} ({oldest})"))
}
