//! Recordings of a few megabytes that unpack to gigabytes outside of the objects, which are decoded
//! one by one: in a string, a key, a comment, a name.

use std::fs::File;
use std::io::Write;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::watched::Watched;
use testkit::fixture::{self, cluster};
use testkit::sandbox::Sandbox;

const HANG: Duration = Duration::from_mins(1);

/// Writes `before`, then `filling` repeatedly up to 512 MiB, then `after`, compressed.
fn pack(sandbox: &Sandbox, before: &str, filling: &str, after: &str) {
    let block = packed(&filling.repeat((1 << 20) / filling.len() + 1));
    let mut file = File::create(sandbox.path("cluster.json.gz")).unwrap();
    file.write_all(&packed(before)).unwrap();
    // A file may consist of many compressed ones.
    file.write_all(&block.repeat(512)).unwrap();
    file.write_all(&packed(after)).unwrap();
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[test]
fn data_outside_of_the_objects_is_limited() {
    let sandbox = fixture::sandbox();
    let whole = cluster().to_string();
    let inside = whole.strip_prefix('{').unwrap();
    let items = cluster()["items"].to_string();
    let in_items = items.strip_prefix('[').unwrap();
    let mut broken = Vec::new();
    let list = "\"apiVersion\":\"v1\",\"kind\":\"List\"";
    for (case, before, filling, after) in [
        ("a string", "{\"a\":\"", "x", &*format!("\",{inside}")),
        ("a string with escapes", "{\"a\":\"", "\\n", &format!("\",{inside}")),
        ("a key", "{\"", "x", &format!("\":1,{inside}")),
        ("the kind", "{\"kind\":\"", "x", &format!("\",{inside}")),
        ("a number", "{\"a\":1", "0", &format!(",{inside}")),
        ("many fields", "{\"a\":[", "1,", &format!("1],{inside}")),
        ("blanks", "{", "    ", inside),
        ("the header", "{\"dsPlan\":{\"toolVersion\":\"", "x", &format!("\"}},{inside}")),
        (
            "an item that is a string",
            &format!("{{{list},\"items\":[\""),
            "x",
            &format!("\",{in_items}}}"),
        ),
        (
            "an item",
            &format!("{{{list},\"items\":[{{\"kind\":\""),
            "x",
            &format!("\"}},{in_items}}}"),
        ),
        ("behind the list", &format!("{{{list},\"items\":{items},\"a\":\""), "x", "\"}"),
        ("behind all of it", &whole, "x", ""),
        (
            "a single object",
            "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"",
            "x",
            "\"}}",
        ),
        ("YAML: a string", "a: \"", "x", &format!("\"\n{}", yaml())),
        ("YAML: a block", "a: |\n", "  - xxxxxxxxxxxxxxxxxxxxxxxxxxx\n", &yaml()),
        ("YAML: a comment", "# ", "x", &format!("\n{}", yaml())),
        ("YAML: many comments", "# x\n", "# x\n", &yaml()),
        ("YAML: an anchor", "a: &", "x", &format!(" b\n{}", yaml())),
        ("YAML: an item", "items: [{a: \"", "x", "\"}]\n"),
        ("YAML: many keys", "a: {", "a, ", &format!("}}\n{}", yaml())),
    ] {
        pack(&sandbox, before, filling, after);
        let line = "-f agent.yaml --snapshot cluster.json.gz";
        let run = Watched::run(sandbox.ds_plan_command(line), HANG);
        eprintln!(
            "{case}: {:?} {} MiB, {} bytes of output",
            run.took,
            run.peak >> 20,
            run.stderr.len()
        );
        let held = run.status.is_some_and(|it| it.code() == Some(1))
            && run.peak < 400 << 20
            && run.stderr.len() < 64 << 10
            && run.stderr.starts_with("error: ");
        if !held {
            broken.push(format!("{case}: {run}"));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn yaml() -> String {
    serde_yaml::to_string(&cluster()).unwrap()
}
