//! The comparison of two builds (`.ci/speed`): when it fails, and that this is documented.

use std::fs;
use std::path::Path;

use compared::{LITTLE, Least, worse};

#[path = "../../benches/compared.rs"]
mod compared;

#[test]
fn a_build_is_worse_if_it_takes_more_than_the_limit_and_a_little() {
    let slower = "1.180 s, before 1.000 s";
    let larger = "25.5 MiB, before 20.0 MiB";
    let cases: [(&str, f64, f64, &[&str]); 8] = [
        ("the same", 1.0, 20.0, &[]),
        ("less of both", 0.5, 10.0, &[]),
        ("within the limit", 1.14, 22.5, &[]),
        ("little more than the limit", 1.16, 24.5, &[]),
        ("slower", 1.18, 20.0, &[slower]),
        ("larger", 1.0, 25.5, &[larger]),
        ("larger, but faster", 0.5, 25.5, &[larger]),
        ("both", 1.18, 25.5, &[slower, larger]),
    ];
    for (rule, seconds, mebibytes, want) in cases {
        let before = Least { seconds: 1.0, mebibytes: 20.0 };
        assert_eq!(worse(Least { seconds, mebibytes }, before, 1.15), want, "{rule}");
    }
    // What takes almost nothing may take more than the limit.
    let before = Least { seconds: 0.01, mebibytes: 1.0 };
    assert!(worse(Least { seconds: 0.03, mebibytes: 3.0 }, before, 1.15).is_empty());
    assert_eq!(worse(Least { seconds: 0.04, mebibytes: 4.0 }, before, 1.15).len(), 2);
}

#[test]
fn the_limit_is_the_documented_one() {
    let read =
        |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let script = read(".ci/speed");
    let most = script.split_once("--at-most ").unwrap().1.split_whitespace().next().unwrap();
    let more = format!("more than {most} times the time");
    let time = format!("{:.0} ms", LITTLE.seconds * 1_000.0);
    let memory = format!("{:.0} MiB", LITTLE.mebibytes);
    let page = read("docs/src/speed.md");
    for (name, text) in
        [(".ci/speed", &script), ("speed.md", &page), ("whole.rs", &read("benches/whole.rs"))]
    {
        for wanted in [&more, &time, &memory] {
            assert!(text.contains(wanted.as_str()), "{name} does not say {wanted}");
        }
    }
    for default in ["NODES:-5000", "ROUNDS:-9"] {
        assert!(script.contains(default), "speed.md says {default}");
    }
    assert!(page.contains("nine rounds on a recording of\n5,000 nodes"), "{page}");
}
