#!/usr/bin/env bash
# Runs ds-apply once. A rollout that waits does not fail the job: the summary says until when, and
# a later run continues it (`--resume`). Approvals that are missing are an output.
set -euo pipefail

folder=${ACTION_FOLDER:-$RUNNER_TEMP/ds-plan}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
events=$folder/events.json
report=$folder/rollout.html

# Splits into words without expansion.
read -r -d '' -a arguments <<<"${ACTION_ARGS:-}" || true

code=0
ds-apply "${arguments[@]}" --yes --annotations github --report "$report" -o json |
    tee "$events" |
    jq --unbuffered -r '"\(.time) \(.daemonSet // "") \(.message)"' |
    # No line of the log is a command.
    sed -u 's/^/| /' || code=$?

# One line of JSON: what each DaemonSet waits for.
waits=$(jq -sc 'map(select(.event == "ended") | .daemonSet as $it
    | .waitsFor[]? | {daemonSet: $it} + .)' "$events")
# The approvals that are missing, with the template that each one is of.
approvals=$(jq -sc '(map(select(.event == "plan") | .plan.daemonSets[]
        | {key: "\(.namespace)/\(.name)", value: .targetTemplate}) | from_entries) as $templates
    | map(select(.event == "ended") | .daemonSet as $it
    | .waitsFor[]? | select(.kind == "approval")
    | {daemonSet: $it, step, template: $templates[$it]})' "$events")
{
    jq -r 'select(.event == "ended") | "- `\(.daemonSet)`: `\(.message | gsub("`"; "'"'"'"))`"' "$events"
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
