//! Claims to devices: those of the pod, and the references of containers (upstream:
//! `validatePodResourceClaims`, `validateResourceClaimNames`).

use std::collections::BTreeSet;

use super::at::{At, Errors};
use super::go_text::{json_struct, quoted};
use super::names;

/// Limit of the list of claims in an error, in bytes.
const LONGEST_LIST: usize = 500;

/// Validates the pod's claims; returns their names for the containers.
pub(super) fn check<'a>(claims: &At<'a>, errors: &mut Errors) -> BTreeSet<&'a str> {
    let mut taken = BTreeSet::new();
    for claim in claims.items() {
        let name = claim.get("name");
        if name.is_empty() {
            errors.push(name.required(""));
        } else if taken.insert(name.text()) {
            name.follows(names::dns_label, errors);
        } else {
            errors.push(name.duplicate());
        }
        check_source(&claim, errors);
    }
    taken
}

fn check_source(claim: &At<'_>, errors: &mut Errors) {
    let sources = ["resourceClaimName", "resourceClaimTemplateName"];
    let found: Vec<At<'_>> = sources.iter().filter_map(|field| claim.find(field)).collect();
    let why = match found.len() {
        0 => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
        1 => "",
        _both => {
            "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified"
        }
    };
    if !why.is_empty() {
        errors.push(claim.invalid_as(shown(claim), why));
    }
    for source in found {
        source.follows(names::dns_subdomain, errors);
    }
}

/// The claim as upstream prints its internal struct.
fn shown(claim: &At<'_>) -> String {
    let pointer =
        |field| claim.find(field).map_or_else(|| "null".to_owned(), |value| value.marshalled());
    json_struct(&[
        ("Name", claim.get("name").marshalled()),
        ("ResourceClaimName", pointer("resourceClaimName")),
        ("ResourceClaimTemplateName", pointer("resourceClaimTemplateName")),
    ])
}

/// Validates `resources.claims` of a container against the pod's claims.
pub(super) fn check_references(claims: &At<'_>, of_pod: &BTreeSet<&str>, errors: &mut Errors) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    let listed = listed(of_pod);
    for claim in claims.items() {
        let (name, request) = (claim.get("name").text(), claim.get("request"));
        if name.is_empty() {
            errors.push(claim.required(""));
            continue;
        }
        check_unique(&claim, name, &request, &mut taken, errors);
        if !of_pod.contains(name) {
            let why = format!("must be one of the names in pod.spec.resourceClaims{listed}");
            errors.push(claim.not_found_as(quoted(name), &why));
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
fn check_unique(
    claim: &At<'_>,
    name: &str,
    request: &At<'_>,
    taken: &mut BTreeSet<String>,
    errors: &mut Errors,
) {
    if taken.contains(name) {
        errors.push(claim.duplicate_as(quoted(name)));
        return;
    }
    request.follows_if_set(names::dns_label, errors);
    let of_request = format!("{name}/");
    let key = if request.is_empty() {
        name.to_owned()
    } else {
        format!("{of_request}{}", request.text())
    };
    if taken.contains(&key) {
        errors.push(claim.duplicate_as(quoted(&key)));
    } else if request.is_empty() {
        let from_there = taken.range(of_request.clone()..);
        let overlaps = from_there.take_while(|other| other.starts_with(&of_request)).count();
        errors.extend((0..overlaps).map(|_| claim.duplicate_as(quoted(name))));
    }
    taken.insert(key);
}

#[cfg(test)]
mod tests {
    use crate::validate::table;

    #[test]
    fn rules() {
        table::check(include_str!("resource_claims.yaml"));
    }
}
