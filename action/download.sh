#!/usr/bin/env bash
# Installs the released programs and adds them to PATH. If there are none, or they cannot be
# downloaded, the next step builds them; an archive with another digest is an error.
set -euo pipefail

build_instead() { # build_instead WHY
    echo "Building ds-plan from source: $1"
    echo "installed=false" >>"$GITHUB_OUTPUT"
    exit 0
}
if [ -z "$ACTION_ARCHIVE" ]; then
    build_instead "no release has this source, for this runner"
fi
version=${ACTION_ARCHIVE#ds-plan-}
version=${version%"-$ACTION_TARGET.tar.gz"}
url=$GITHUB_SERVER_URL/$ACTION_REPOSITORY/releases/download/v$version/$ACTION_ARCHIVE
folder=$RUNNER_TEMP/ds-plan-released
mkdir -p "$folder"
curl --silent --show-error --fail --location --max-time 120 --retry 3 \
    --output "$folder/$ACTION_ARCHIVE" "$url" || build_instead "cannot download $url"
found=$("$(dirname "${BASH_SOURCE[0]}")/sha256.sh" "$folder/$ACTION_ARCHIVE" | cut -d' ' -f1)
if [ "$found" != "$ACTION_SHA256" ]; then
    echo "::error::$url has the digest $found, not $ACTION_SHA256"
    exit 1
fi
tar -xzf "$folder/$ACTION_ARCHIVE" -C "$folder" --strip-components 1
echo "installed=true" >>"$GITHUB_OUTPUT"
echo "$folder" >>"$GITHUB_PATH"
