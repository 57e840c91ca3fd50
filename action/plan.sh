#!/usr/bin/env bash
# Runs ds-plan once and leaves what a comment, a summary and later steps need. Never fails because
# of what the plan says: that is the verdict's affair, after the comment was written.
set -euo pipefail

folder=${DS_PLAN_FOLDER:-$RUNNER_TEMP/ds-plan}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
comment=$folder/comment.md
report=$folder/report.html

arguments=(--annotations github -o markdown --report "$report")
case $DS_PLAN_COMMAND in
plan)
    plan=$folder/plan.json
    arguments+=(--out "$plan" --detailed-exitcode --fail-on-guards)
    base=${DS_PLAN_BASE:-${GITHUB_BASE_REF:+origin/$GITHUB_BASE_REF}}
    if [ -n "$base" ] && [ "$base" != none ]; then
        arguments+=(--base "$base")
    fi
    ;;
drift)
    plan=
    ;;
*)
    echo "::error::the input \`command\` is \`plan\` or \`drift\`"
    exit 64
    ;;
esac
if [ -n "${DS_PLAN_SNAPSHOT:-}" ]; then
    arguments+=(--snapshot "$DS_PLAN_SNAPSHOT")
fi
if [ "${DS_PLAN_COMMENT:-none}" != none ]; then
    arguments+=(--comment "$DS_PLAN_COMMENT")
fi
# Words, and nothing that a shell would make of them.
read -r -d '' -a further <<<"${DS_PLAN_ARGS:-}" || true

code=0
ds-plan "$DS_PLAN_COMMAND" "${arguments[@]}" "${further[@]}" >"$comment" || code=$?

case $code in
0) changes=false ;;
2 | 3 | 6) changes=true ;;
*)
    changes=
    echo "**ds-plan failed** with exit code $code; the log of this job says why, and errors of manifests are marked in the files." >"$comment"
    ;;
esac
cat "$comment" >>"$GITHUB_STEP_SUMMARY"
{
    echo "exit-code=$code"
    echo "changes=$changes"
    echo "plan=$plan"
    echo "report=$report"
    echo "comment=$comment"
} >>"$GITHUB_OUTPUT"
