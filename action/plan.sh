#!/usr/bin/env bash
# Runs ds-plan once and writes the files for the comment, the summary and later steps. The content
# of the plan never makes this step fail; verdict.sh decides that after the comment is written.
set -euo pipefail

folder=${ACTION_FOLDER:-$RUNNER_TEMP/ds-plan}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
comment=$folder/comment.md
report=$folder/report.html

arguments=(--annotations github -o markdown --report "$report")
case $ACTION_COMMAND in
plan)
    plan=$folder/plan.json
    arguments+=(--out "$plan" --detailed-exitcode --fail-on-guards)
    base=${ACTION_BASE:-${GITHUB_BASE_REF:+origin/$GITHUB_BASE_REF}}
    if [ -n "$base" ] && [ "$base" != none ]; then
        arguments+=(--base "$base")
    fi
    ;;
drift)
    plan=
    ;;
*)
    echo "::error::the input \`command\` must be \`plan\`, \`drift\`, \`apply\` or \`install\`"
    exit 64
    ;;
esac
if [ -n "${ACTION_SNAPSHOT:-}" ]; then
    arguments+=(--snapshot "$ACTION_SNAPSHOT")
fi
if [ "${ACTION_COMMENT:-none}" != none ]; then
    arguments+=(--comment "$ACTION_COMMENT")
fi
# Splits into words without expansion. macOS has bash 3.2, in which an empty array counts as unset:
# hence the `+` below.
read -r -d '' -a further <<<"${ACTION_ARGS:-}" || true

code=0
ds-plan "$ACTION_COMMAND" "${arguments[@]}" ${further[@]+"${further[@]}"} >"$comment" || code=$?

case $code in
0) changes=false ;;
2 | 3 | 6) changes=true ;;
*)
    changes=
    echo "**ds-plan failed** with exit code $code; see the log of this job; errors in manifests are marked in the files." >"$comment"
    ;;
esac
# Adds the age and origin of the recording before the marker in the last line.
if [ -n "${ACTION_SNAPSHOT:-}" ] && [ -n "$plan" ] && [ -n "$changes" ]; then
    minutes=$(jq '((now - (.cluster.observedAt | sub("\\.[0-9]+"; "") | fromdate)) / 60) | floor' "$plan")
    told="Planned on a recording that is $((minutes / 60)) h $((minutes % 60)) min old"
    if [ -n "${ACTION_ORIGIN:-}" ]; then
        told="$told, from <$(printf '%s' "$ACTION_ORIGIN" | tr -cd 'A-Za-z0-9:/._-')>"
    fi
    last=$(tail -n 1 "$comment")
    case $last in
    '<!-- ds-plan:'*)
        { sed '$d' "$comment" && printf '%s.\n\n%s\n' "$told" "$last"; } >"$comment.new"
        mv "$comment.new" "$comment"
        ;;
    *) printf '\n%s.\n' "$told" >>"$comment" ;;
    esac
fi
cat "$comment" >>"$GITHUB_STEP_SUMMARY"
# The digest shows approvers which file they approve; `ds-apply --sha256` accepts no other file.
sha256=
if [ -n "$plan" ] && [ -n "$changes" ] && [ -z "${GITHUB_BASE_REF:-}" ]; then
    sha256=$("$(dirname "${BASH_SOURCE[0]}")/sha256.sh" "$plan" | cut -d' ' -f1)
    printf "\nSaved plan: \`sha256:%s\`\n" "$sha256" >>"$GITHUB_STEP_SUMMARY"
fi
{
    echo "exit-code=$code"
    echo "changes=$changes"
    echo "plan=$plan"
    echo "sha256=$sha256"
    echo "report=$report"
    echo "comment=$comment"
} >>"$GITHUB_OUTPUT"
