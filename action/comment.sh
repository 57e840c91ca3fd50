#!/usr/bin/env bash
# Writes the comment on the pull request, or updates the existing one. If that is not permitted,
# only the job summary has the plan.
set -euo pipefail

if [ "${ACTION_COMMENT:-none}" = none ]; then
    exit 0
fi
number=$(jq -r '.pull_request.number // empty' "$GITHUB_EVENT_PATH")
if [ -z "$number" ]; then
    exit 0
fi
head=$(jq -r '.pull_request.head.repo.full_name // empty' "$GITHUB_EVENT_PATH")
if [ "$head" != "$GITHUB_REPOSITORY" ]; then
    echo "::notice::The token of a fork's pull request cannot comment; see the plan in the summary of this job."
    exit 0
fi

# The token is passed by a file descriptor, so that no process list shows it.
api() { # api METHOD PATH, with a body on standard input if there is one to send
    local body=() # empty, it counts as unset in bash 3.2 (macOS): hence the `+` below
    if [ "$1" != GET ]; then
        body=(--data @-)
    fi
    curl --silent --show-error --fail-with-body --max-time 30 --retry 3 --request "$1" \
        --header @<(printf 'Authorization: Bearer %s\n' "$GITHUB_TOKEN") \
        --header 'Accept: application/vnd.github+json' \
        --header 'X-GitHub-Api-Version: 2022-11-28' \
        ${body[@]+"${body[@]}"} "$GITHUB_API_URL/repos/$GITHUB_REPOSITORY/$2"
}

# Only comments of bots: a user's comment that contains the marker is not overwritten.
marker="<!-- ds-plan:$ACTION_COMMENT -->"
ours() { # the ids of our comments on one page of results
    jq --arg marker "$marker" '.[] | select(.user.type == "Bot")
        | select(.body | rtrimstr("\n") | endswith($marker)) | .id'
}
find_ours() {
    local page=1 comments
    while :; do
        comments=$(api GET "issues/$number/comments?per_page=100&page=$page") || return
        ours <<<"$comments"
        if [ "$(jq length <<<"$comments")" -lt 100 ]; then
            return
        fi
        page=$((page + 1))
    done
}
not_permitted() {
    echo "::warning::The comment could not be written; grant the job \`pull-requests: write\`. See the plan in its summary."
    exit 0
}

found=$(find_ours) || not_permitted
id=${found%%$'\n'*}
# The text of a failed run does not contain the marker.
if ! grep -qF -- "$marker" "$ACTION_TEXT"; then
    printf '\n%s\n' "$marker" >>"$ACTION_TEXT"
fi
if [ -n "$id" ]; then
    jq -Rs '{body: .}' "$ACTION_TEXT" | api PATCH "issues/comments/$id" >/dev/null || not_permitted
elif [ "$ACTION_CHANGES" != false ]; then
    jq -Rs '{body: .}' "$ACTION_TEXT" | api POST "issues/$number/comments" >/dev/null || not_permitted
fi
