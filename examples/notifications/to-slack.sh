#!/usr/bin/env bash
# Posts one notification of ds-apply to Slack: reads the document on standard input, and needs the URL
# of an incoming webhook in SLACK_WEBHOOK_URL. For examples/notifications/receiver.mjs; needs curl and
# jq.
set -euo pipefail

event=$(cat)

# The end of each DaemonSet says more than that of the run, which counts only if it failed before.
text=$(jq -r '
  # Slack reads these three as markup, and nothing else of a message that is not of ours.
  def plain: gsub("&"; "&amp;") | gsub("<"; "&lt;") | gsub(">"; "&gt;");
  def sign:
    if .event == "failed" or .exitCode == 4 then ":x:"
    elif .exitCode == 0 then ":white_check_mark:"
    elif .exitCode == 9 then ":raised_hand:"
    elif .event == "waitingFor" or .exitCode == 8 then ":hourglass:"
    elif .event == "started" then ":arrow_forward:"
    else ":warning:" end;
  if .event == "runEnded" and (.exitCode == 0 or .exitCode == 4 or .exitCode == 8 or .exitCode == 9)
  then empty
  else
    [ sign,
      (if .rehearsal then "REHEARSAL" else empty end),
      (.cluster // empty | plain),
      (.daemonSet // "run" | "*" + plain + "*"),
      (.message | plain),
      (.commit // empty | "at " + (.[:19] | plain))
    ] | join("  ")
  end' <<<"$event")
[[ -n $text ]] || exit 0

# The URL is a secret: in a file descriptor it is in no list of processes.
jq -n --arg text "$text" '{text: $text}' |
    curl --config <(printf 'url = "%s"\n' "$SLACK_WEBHOOK_URL") --fail --silent --show-error \
        --max-time 10 --header 'Content-Type: application/json' --output /dev/null --data-binary @-
