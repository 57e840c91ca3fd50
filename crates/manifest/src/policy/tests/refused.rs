//! What cannot be meant: each is refused with its place.

use std::fmt::Write as _;

use super::read;

/// The lines of a policy after `spec:`, which begin on line 15, and the errors of the file.
const REFUSED: &[(&str, &[&str])] = &[
    ("preconditions: []", &[]),
    (
        "gates: [{name: a}]",
        &["15:11: spec.gates[0]: check `a`: set exactly one of `prometheus`, `http`, `command`, \
           `nodeConditions` and `pods`"],
    ),
    (
        "gates: [{name: a, command: [x], http: {url: 'https://a'}}]",
        &["15:11: spec.gates[0]: check `a`: set exactly one of"],
    ),
    (
        "gates: [{name: A, command: [x]}, {name: b, command: [x]}]\n\
         preconditions: [{name: b, command: [x]}]",
        &[
            "15:18: spec.gates[0].name: `A` is not a name for a check",
            "15:43: spec.gates[1].name: another check before it is named `b`, too",
        ],
    ),
    (
        "gates: [{name: a, interval: 0s, command: []}]",
        &[
            "15:31: spec.gates[0].interval: use 1s or more",
            "15:35: spec.gates[0].command: name a program",
        ],
    ),
    (
        "preconditions: [{name: a, delay: 1s, allow: 1, command: [x]}]",
        &[
            "15:36: spec.preconditions[0].delay: a precondition is asked before a node begins",
            "15:47: spec.preconditions[0].allow: only one sample counts here",
        ],
    ),
    (
        "gates: [{name: a, prometheus: {address: 'https://a', query: ' '}}]",
        &[
            "15:21: spec.gates[0].prometheus: set `min`, `max`, or both",
            "15:63: spec.gates[0].prometheus.query: it is empty",
        ],
    ),
    (
        "gates: [{name: a, prometheus: {address: 'https://a', query: x, min: 2, max: 1}}]",
        &["15:71: spec.gates[0].prometheus.min: 2 is more than `max`, 1: nothing would pass"],
    ),
    (
        "gates: [{name: a, prometheus: {address: 'https://a', query: x, max: '1'}}]",
        &["15:71: spec.gates[0].prometheus.max: invalid type: string"],
    ),
    (
        "gates: [{name: a, prometheus: {address: 'https://a', query: 'x{n=~\"{{node}}\"}', max: 1}}]",
        &["15:63: spec.gates[0].prometheus.query: `{{node}}` is no placeholder: use `{{nodes}}`, \
           `{{others}}`, `{{namespace}}`, `{{name}}`"],
    ),
    (
        "gates: [{name: a, prometheus: {address: 'https://a', query: 'x{n=~\"{{nodes}}\"}', max: 1}}]",
        &[],
    ),
    (
        "gates: [{name: a, prometheus: {address: 'https://a?b', query: '{{', max: 1}}]",
        &[
            "15:43: spec.gates[0].prometheus.address: an address has no query",
            "15:65: spec.gates[0].prometheus.query: `{{` has no `}}`",
        ],
    ),
    (
        "gates: [{name: a, http: {url: 'https://a', status: 99}}]",
        &["15:54: spec.gates[0].http.status: 99 is not the status of an answer"],
    ),
    (
        "gates: [{name: a, pods: {selector: {matchLabel: {a: b}}}}]",
        &["15:39: spec.gates[0].pods.selector.matchLabel: unknown field `matchLabel`"],
    ),
    (
        "gates: [{name: a, pods: {expect: absent}}]",
        &[
            "15:21: spec.gates[0].pods: set `selector`, `resource`, or both",
            "15:36: spec.gates[0].pods.expect: `absent` is only for preconditions",
        ],
    ),
    (
        "preconditions: [{name: a, nodeConditions: {Ready: 'Yes'}}]",
        &["15:53: spec.preconditions[0].nodeConditions.Ready: `Yes` is not \"True\", \"False\" or"],
    ),
    (
        "gates: [{name: a, allow: 1, nodeConditions: {Ready: 'True'}}]",
        &["15:28: spec.gates[0].allow: only one sample counts here"],
    ),
    ("gates: [{name: a, pods: {resource: 'nvidia.com/gpu', on: cluster}}]", &[]),
    ("preconditions: [{name: a, pods: {selector: {matchLabels: {a: b}}, expect: absent}}]", &[]),
    (
        "prePull: {parallel: 0}",
        &["15:23: spec.prePull.parallel: no node could ever pull; use 1 or more"],
    ),
    (
        "prePull: {timeout: soon}",
        &["15:22: spec.prePull.timeout: `soon` is not a duration such as 90s, 10m or 1h30m"],
    ),
    (
        "sharedBudget: 2\nprePull: {}",
        &["16:3: spec.prePull: not possible together with `sharedBudget` yet; leave out one of \
             them"],
    ),
    ("sharedBudget: 0", &["15:17: spec.sharedBudget: no node could ever begin; use 1 or more"]),
    ("sharedBudget: 0%", &["15:17: spec.sharedBudget: no node could ever begin; use 1 or more"]),
    (
        "order: 3\nonFailure: park",
        &[
            "15:10: spec.order: `order` is replaced by `after`: list the DaemonSets that must be \
             done first, such as `after: [kube-system/cni]`",
            "16:14: spec.onFailure: `park` is now `abort`",
        ],
    ),
    ("onFailure: hold", &["15:14: spec.onFailure: `hold` is now `pause`"]),
    (
        "onFailure: stop",
        &["15:14: spec.onFailure: unknown variant `stop`, expected one of `abort`, `pause`, \
           `rollback`"],
    ),
    ("after: [a/b, a/c, a/b]", &["15:21: spec.after[2]: `a/b` is listed twice"]),
    ("after: [agent]", &["15:3: spec.after: `agent` is not of the form NAMESPACE/NAME"]),
    ("steps: [{nodes: 1}]", &["15:11: spec.steps[0]: missing field `name`"]),
    ("steps: [{name: a}]", &["15:11: spec.steps[0]: missing field `nodes`"]),
    (
        "steps:\n- {name: a, nodes: 1}\n- {name: a, nodes: 2}",
        &["17:12: spec.steps[1].name: another step before it is named `a`, too"],
    ),
    (
        "steps: [{name: rest, nodes: 1}]",
        &["15:18: spec.steps[0].name: `rest` is the implied last step: all other nodes"],
    ),
    (
        "steps: [{name: Canary, nodes: 1}]",
        &["15:18: spec.steps[0].name: `Canary` is not a name for a step: use lowercase letters, \
           digits and `-` between them, at most 40 characters"],
    ),
    ("steps: [{name: a-23456789-123456789-123456789-123456789, nodes: 1}]", &[]),
    (
        "steps: [{name: a-23456789-123456789-123456789-1234567890, nodes: 1}]",
        &["15:18: spec.steps[0].name: `a-23456789-123456789-123456789-1234567890` is not a name"],
    ),
    (
        "steps: [{name: a, nodes: 0}, {name: b, nodes: 0%}]",
        &[
            "15:28: spec.steps[0].nodes: `0` selects no node; use 1 or more",
            "15:49: spec.steps[1].nodes: `0%` selects no node; use 1 or more",
        ],
    ),
    (
        "steps: [{name: a, nodes: 100%}, {name: b, nodes: 101%}]",
        &["15:52: spec.steps[1].nodes: `101%` is more than all nodes"],
    ),
    (
        "steps:\n- {name: a, nodes: 3}\n- {name: b, nodes: 5%}\n- {name: c, nodes: 3}\n\
         - {name: d, nodes: 4%}",
        &[
            "18:22: spec.steps[2].nodes: `3` is not more than the 3 of step `a`; each step \
             includes the nodes of those before it",
            "19:22: spec.steps[3].nodes: `4%` is not more than the 5% of step `b`; each step \
             includes the nodes of those before it",
        ],
    ),
    ("steps: [{name: a, nodes: 50%}, {name: b, nodes: 3}, {name: c, nodes: 51%}]", &[]),
    ("steps: [{name: a, nodes: -1}]", &["15:28: spec.steps[0].nodes: "]),
    ("steps: [{name: a, nodes: [b]}]", &["15:21: spec.steps[0].nodes: expected a number"]),
    ("steps: [{name: a, nodes: {}}]", &["15:21: spec.steps[0].nodes: set `names`, `matchLabels`"]),
    (
        "steps: [{name: a, nodes: {name: b}}]",
        &["15:21: spec.steps[0].nodes: unknown field `name`, expected one of"],
    ),
    (
        "steps: [{name: a, nodes: {names: [b]}, spread: zone}]",
        &["15:50: spec.steps[0].spread: only a number or percentage of nodes is spread over the \
           values of a label; leave it out"],
    ),
    (
        "steps: [{name: a, nodes: 1, spread: a b}]",
        &["15:39: spec.steps[0].spread: `a b`: name part must consist of"],
    ),
    (
        "steps: [{name: a, nodes: {names: [b, c, b]}}]",
        &["15:43: spec.steps[0].nodes.names[2]: `b` is listed twice"],
    ),
    (
        "steps: [{name: a, nodes: {names: [B]}}]",
        &["15:37: spec.steps[0].nodes.names[0]: `B`: a lowercase RFC 1123 subdomain must"],
    ),
    (
        "steps: [{name: a, nodes: {matchLabels: {a b: c d}}}]",
        &[
            "15:21: spec.steps[0].nodes: `a b`: name part must consist of",
            "15:21: spec.steps[0].nodes: `c d`: a valid label must be an empty string or",
        ],
    ),
    (
        "steps: [{name: a, nodes: 1, maxUnavailable: 0%}]",
        &["15:47: spec.steps[0].maxUnavailable: no node could ever begin; use 1 or more"],
    ),
    ("maxUnavailable: 0", &["15:19: spec.maxUnavailable: no node could ever begin; use 1 or more"]),
    (
        "maxUnavailable: 0%",
        &["15:19: spec.maxUnavailable: no node could ever begin; use 1 or more"],
    ),
    ("steps: [{name: a, nodes: 1, soak: soon}]", &["15:37: spec.steps[0].soak: `soon` is not a"]),
    ("steps: [{name: a, nodes: 1, soak: -1h}]", &["15:37: spec.steps[0].soak: `-1h` is not a"]),
    ("steps: [{name: a, nodes: 1, sok: 1h}]", &["15:36: spec.steps[0].sok: unknown field `sok`"]),
    (
        "minReadySeconds: 600\nwindows:\n- {schedule: 0 2 * * *, duration: 10m}\n\
         - {schedule: 0 4 * * *, duration: 5m}",
        &["16:3: spec.windows: none is long enough for one node: its new pod must be Ready for \
           600 s (`minReadySeconds`) before the window closes"],
    ),
    ("minReadySeconds: 600\nwindows: [{schedule: 0 2 * * *, duration: 11m}]", &[]),
    // Windows that touch are one.
    ("minReadySeconds: 600\nwindows: [{schedule: '*/5 * * * *', duration: 5m}]", &[]),
    ("domains: {atOnce: 1}", &["15:3: spec.domains: missing field `key`"]),
    (
        "domains: {key: zone, atOnce: 0, maxUnavailable: 0, first: [a, b, a]}",
        &[
            "15:32: spec.domains.atOnce: no domain could ever begin; use 1 or more",
            "15:51: spec.domains.maxUnavailable: no node could ever begin; use 1 or more",
            "15:68: spec.domains.first[2]: `a` is listed twice",
        ],
    ),
    ("domains: {key: /zone}", &["15:18: spec.domains.key: `/zone`: prefix part must be"]),
    ("whileWaiting: never", &["15:17: spec.whileWaiting: unknown variant `never`, expected"]),
    ("maxDuration: 0s", &["15:16: spec.maxDuration: `0s` is not a duration"]),
    ("maxRestarts: 1\nmaxRestarts: 9", &["16:3: key `maxRestarts` is already on line 15"]),
    ("domains:\n  key: zone\n  key: node", &["17:5: key `key` is already on line 16"]),
];

#[test]
fn what_cannot_be_meant_is_refused_with_its_place() {
    let mut wrong = String::new();
    for (lines, want) in REFUSED {
        let lines = lines.replace('\n', "\n  ");
        let text =
            format!("metadata: {{name: p}}\nspec:\n  selects: {{labels: {{a: b}}}}\n  {lines}");
        let errors = read(&[&text]).err().map(|errors| errors.to_string()).unwrap_or_default();
        let found: Vec<&str> = errors.lines().collect();
        let is_wanted = |(found, want): (&&str, &&str)| {
            let (place, message) = want.split_once(": ").unwrap();
            found.starts_with(&format!("f.yaml:{place}: RolloutPolicy: {message}"))
        };
        if found.len() != want.len() || !found.iter().zip(*want).all(is_wanted) {
            writeln!(wrong, "{lines}\n{errors}\ninstead of\n{}\n", want.join("\n")).unwrap();
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
