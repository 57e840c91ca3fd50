#!/usr/bin/env bash
# Fails or passes the job, by the exit code of ds-plan and the input `fail-on`.
set -euo pipefail

case $ACTION_FAIL_ON in
guards | changes | nothing) ;;
*)
    echo "::error::the input \`fail-on\` is \`guards\`, \`changes\` or \`nothing\`"
    exit 64
    ;;
esac
case $ACTION_EXIT:$ACTION_FAIL_ON in
0:* | 2:guards | [236]:nothing) exit 0 ;;
2:changes) echo "::error::there are changes" ;;
3:*) echo "::error::there is drift" ;;
6:*) echo "::error::ds-apply would refuse this plan" ;;
esac
exit "$ACTION_EXIT"
