//! Migration of fields from client-side apply to server-side apply, by our rules and on the server.

use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::{APPLIER, decided, defaulted, equal, ours, ownership_in, server, story, timeless};
use crate::harness::kubernetes;
use testkit::manifests;
use testkit::random::Random;

/// Migrates the fields that client-side appliers own in `live` on the server, and compares the
/// result. Returns the object afterwards; `None` if no such applier owns anything.
pub(super) async fn migrate(client: &Client, live: &Value) -> Result<Option<Value>, String> {
    let name = live["metadata"]["name"].as_str().unwrap();
    let owners = ssa::ownership(&ssa::DAEMON_SET, live, Timestamp::now())
        .map_err(|error| error.to_string())?;
    let from = owners.client_side_appliers();
    if from.is_empty() {
        return Ok(None);
    }
    let migrated = owners.migrated(&from, APPLIER).to_value();
    // As csaupgrade does it: with the seen version as a precondition.
    let patch = json!([
        { "op": "add", "path": "/metadata/managedFields", "value": migrated },
        {
            "op": "replace", "path": "/metadata/resourceVersion",
            "value": live["metadata"]["resourceVersion"],
        },
    ]);
    let served = server::patch(client, name, "json-patch", APPLIER, &patch).await?;
    equal("migrated ownership", &migrated, &served["metadata"]["managedFields"])?;
    equal("migrated object", &live["spec"], &served["spec"])?;
    Ok(Some(served))
}

/// kubectl applies, then migrates, and applies again.
#[tokio::test]
async fn our_migration_matches_kubectl() {
    if !kubernetes::keeps_templates_as_sent() {
        return;
    }
    let plane = super::api_server();
    let client = plane.client();
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for seed in 0..40 {
        let mut random = Random::seeded(1000 + seed);
        let name = format!("ds-{seed}");
        let created = manifests::whole(&mut random, &name).to_string();
        let created = plane.try_kubectl_stdin(&["apply", "--filename=-"], &created);
        if !created.status.success() {
            continue;
        }
        let reported = story::write(&plane, &client, &mut random, &name).await;
        let live = server::get(&client, &name).await.unwrap();
        let wanted = manifests::whole(&mut random, &name);
        let Ok(predicted) = kubectl_by_rule(&live, &wanted) else { continue };

        let arguments =
            ["apply", "--server-side", "--force-conflicts", "--field-manager=ds-apply", "-f-"];
        let applied = plane.try_kubectl_stdin(&arguments, &wanted.to_string());
        if !applied.status.success() {
            continue;
        }
        // The object after the migration may be invalid; kubectl then only warns.
        let complaint = String::from_utf8_lossy(&applied.stderr).contains("failed to re-apply");
        let invalid = !manifest::validate(&predicted).is_empty();
        if complaint || invalid {
            assert!(complaint && invalid, "seed {seed}: {reported}\n{applied:?}");
            continue;
        }
        let served = server::get(&client, &name).await.unwrap();
        compared += 1;
        let owners = timeless(&predicted["metadata"]["managedFields"]);
        let object = equal("object", &decided(&predicted), &decided(&served));
        let owners = equal("ownership", &owners, &ownership_in(&served));
        if let Err(difference) = object.and(owners) {
            wrong.push(format!("seed {seed}: {reported}\n{difference}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 25, "only {compared}");
}

/// The object after what kubectl does, or the error if it would be rejected.
fn kubectl_by_rule(live: &Value, wanted: &Value) -> Result<Value, String> {
    let apply = |live: &Value| -> Result<Value, String> {
        let merged = ours(Some(live), wanted).map_err(|error| error.to_string())?;
        let mut object = defaulted(merged.object);
        object["metadata"]["managedFields"] = merged.managed_fields.to_value();
        Ok(object)
    };
    let mut object = apply(live)?;
    let owners = ssa::ownership(&ssa::DAEMON_SET, &object, Timestamp::now())
        .map_err(|error| error.to_string())?;
    let from = owners.client_side_appliers();
    if from.is_empty() {
        return Ok(object);
    }
    object["metadata"]["managedFields"] = owners.migrated(&from, APPLIER).to_value();
    apply(&object)
}
