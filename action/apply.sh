#!/usr/bin/env bash
# Runs ds-apply once. A rollout that waits does not fail the job: the summary says until when, and
# a later run continues it (`--resume`). Approvals that are missing are an output.
set -euo pipefail

folder=${ACTION_FOLDER:-$RUNNER_TEMP/ds-plan}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
events=$folder/events.json
report=$folder/rollout.html

# Splits into words without expansion. macOS has bash 3.2, in which an empty array counts as unset:
# hence the `+` below.
read -r -d '' -a arguments <<<"${ACTION_ARGS:-}" || true

# Messages quote images, containers and metrics. No line of the log may be a command of the runner,
# which is `::` at its begin, or `##[` anywhere.
plain='def plain: gsub("[\\p{Cc}\\p{Cf}\u2028\u2029]"; " ") | gsub("#(?=#)"; "# ");'
code=0
ds-apply ${arguments[@]+"${arguments[@]}"} --yes --annotations github --report "$report" -o json |
    tee "$events" |
    jq --unbuffered -r "$plain"' "\(.time) \(.daemonSet // "") \(.message)" | plain' |
    sed -u 's/^/| /' || code=$?

# One line of JSON: what each DaemonSet waits for.
waits=$(jq -sc 'map(select(.event == "ended") | .daemonSet as $it
    | .waitsFor[]? | {daemonSet: $it} + del(.daemonSet)
        + (if .daemonSet then {other: .daemonSet} else {} end))' "$events")
# The approvals that are missing, with the template that each one is of.
approvals=$(jq -sc '(map(select(.event == "plan") | .plan.daemonSets[]
        | {key: "\(.namespace)/\(.name)", value: .targetTemplate}) | from_entries) as $templates
    | map(select(.event == "ended") | .daemonSet as $it
    | .waitsFor[]? | select(.kind == "approval")
    | {daemonSet: $it, step, template: $templates[$it]})' "$events")
{
    jq -r "$plain"' select(.event == "ended")
        | "- `\(.daemonSet)`: `\(.message | plain | gsub("`"; "'"'"'"))`"' "$events"
    jq -r '.[] | "\nTo approve: `ds-apply approve \(.daemonSet) \(.step)`, or run the workflow ds-approve."' <<<"$approvals"
} >>"$GITHUB_STEP_SUMMARY"
{
    echo "exit-code=$code"
    echo "report=$report"
    echo "waits=$waits"
    echo "approvals=$approvals"
} >>"$GITHUB_OUTPUT"
case $code in
0 | 8 | 9) ;;
*) exit "$code" ;;
esac
