//! What client-side apply owned, handed over to server-side apply, by rule and on the server.

use ds_plan::merge;
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use super::{APPLIER, equal, server};

/// Hands over what client-side appliers own of `live`, for real, and compares what the server then
/// serves; the object afterwards. Nothing when no such applier owns anything.
pub(super) async fn migrate(client: &Client, live: &Value) -> Result<Option<Value>, String> {
    let name = live["metadata"]["name"].as_str().unwrap();
    let owners = merge::ownership(live, Timestamp::now()).map_err(|error| error.to_string())?;
    let from = owners.client_side_appliers();
    if from.is_empty() {
        return Ok(None);
    }
    let migrated = owners.migrated(&from, APPLIER).to_value();
    // As csaupgrade does it: on top of exactly what was seen.
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
