# Lines of `cargo tree --prefix depth --format '|{p}|{l}|{r}'` as a CycloneDX document.

# The digest of each package from a registry, by name and version.
def digests:
    $lock | split("[[package]]\n")[1:]
    | map(capture("^name = \"(?<name>[^\"]+)\"\nversion = \"(?<version>[^\"]+)\"\n(.*\n)*?checksum = \"(?<digest>[0-9a-f]{64})\""))
    | map({key: "\(.name)@\(.version)", value: .digest}) | from_entries;

def package:
    capture("^(?<depth>[0-9]+)\\|(?<name>[^ ]+) v(?<version>[^ |]+)[^|]*\\|(?<license>[^|]*)\\|(?<repository>[^ ]*)")
    | .depth |= tonumber
    | .license |= gsub("/"; " OR ") # as crates wrote it before SPDX expressions
    | .ref = "pkg:cargo/\(.name)@\(.version)";

def component($digests):
    {type: "library", name, version, "bom-ref": .ref, purl: .ref, licenses: [{expression: .license}]}
    + ($digests["\(.name)@\(.version)"] | if . then {hashes: [{alg: "SHA-256", content: .}]} else {} end)
    + (if .repository == "" then {} else {externalReferences: [{type: "vcs", url: .repository}]} end);

[inputs | package] as $lines
| digests as $digests
# A line depends on those below it that are one level deeper: remember the last line of each level.
| reduce $lines[] as $line ({stack: [], edges: []};
    .stack[$line.depth] = $line.ref
    | if $line.depth > 0 then .edges += [{from: .stack[$line.depth - 1], to: $line.ref}] else . end)
| .edges as $edges
| ($lines | unique_by(.ref)) as $packages
| ($lines[0]) as $program
| {
    bomFormat: "CycloneDX",
    specVersion: "1.5",
    version: 1,
    metadata: {
        timestamp: $time,
        component: ($program | component($digests) | .type = "application"),
        properties: [{name: "target", value: $target}]
    },
    components: [$packages[] | select(.ref != $program.ref) | component($digests)],
    dependencies: [$packages[].ref as $ref
        | {ref: $ref, dependsOn: ([$edges[] | select(.from == $ref).to] | unique)}]
}
