//! Claims to devices: those of the pod, and the references of containers (upstream:
//! `validatePodResourceClaims`, `validateResourceClaimNames`).

use std::collections::BTreeSet;

use super::at::At;
use super::formats::{dns_label, dns_subdomain};
use super::go_text::{GoStruct, POINTER, STRING, json_struct, quoted};
use super::rules::Rule::{Follows, FollowsIfNotEmpty};

/// Limit of the list of claims in an error, in bytes.
const LONGEST_LIST: usize = 500;

const CLAIM: GoStruct = &[
    ("Name", "name", STRING),
    ("ResourceClaimName", "resourceClaimName", POINTER),
    ("ResourceClaimTemplateName", "resourceClaimTemplateName", POINTER),
];

/// Validates the pod's claims; returns their names for the containers.
pub(super) fn check<'a>(claims: &At<'a>) -> BTreeSet<&'a str> {
    let mut all_names = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.get("name");
        if name.is_empty() {
            name.required("");
        } else if all_names.insert(name.text()) {
            name.check(Follows(dns_label));
        } else {
            name.duplicate();
        }
        check_source(&claim);
    }
    all_names
}

fn check_source(claim: &At<'_>) {
    let sources = claim.find_all(&["resourceClaimName", "resourceClaimTemplateName"]);
    let why = match sources.len() {
        0 => Some("must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"),
        1 => None,
        _both => Some(
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
        ),
    };
    if let Some(why) = why {
        claim.invalid_as(json_struct(claim.json(), CLAIM), why);
    }
    for source in sources {
        source.check(Follows(dns_subdomain));
    }
}

/// Validates `resources.claims` of a container against the pod's claims.
pub(super) fn check_references(claims: &At<'_>, of_pod: &BTreeSet<&str>) {
    let mut all_names = BTreeSet::new();
    let listed = listed(of_pod);
    for claim in claims.items() {
        let name = claim.get("name").text();
        if name.is_empty() {
            claim.required("");
            continue;
        }
        check_unique(&claim, name, &mut all_names);
        if !of_pod.contains(name) {
            let why = format!("must be one of the names in pod.spec.resourceClaims{listed}");
            claim.not_found_as(quoted(name), &why);
        }
    }
}

/// The pod's claims as upstream lists them; upstream has no limit, but each error repeats the list.
fn listed(of_pod: &BTreeSet<&str>) -> String {
    if of_pod.is_empty() {
        return " which is empty".to_owned();
    }
    let mut listed = String::from(": ");
    for (at, name) in of_pod.iter().enumerate() {
        let separator = if at == 0 { "" } else { ", " };
        if listed.len() + name.len() > LONGEST_LIST {
            return format!("{listed}{separator}…");
        }
        listed.extend([separator, name]);
    }
    listed
}

/// Validates that a claim is not used both completely and by one of its requests.
fn check_unique(claim: &At<'_>, name: &str, all_names: &mut BTreeSet<String>) {
    if all_names.contains(name) {
        return claim.duplicate_as(quoted(name));
    }
    let request = claim.get("request");
    request.check(FollowsIfNotEmpty(dns_label));
    let of_request = format!("{name}/{}", request.text());
    let key = if request.is_empty() { name } else { &of_request };
    if all_names.contains(key) {
        claim.duplicate_as(quoted(key));
    } else if request.is_empty() {
        let from_there = all_names.range(of_request.clone()..);
        let overlaps = from_there.take_while(|other| other.starts_with(&of_request)).count();
        (0..overlaps).for_each(|_| claim.duplicate_as(quoted(name)));
    }
    all_names.insert(key.to_owned());
}
