#!/usr/bin/env bash
# Looks for ds-plan on PATH; otherwise outputs the cache folder and the version to build.
set -euo pipefail

if command -v ds-plan >/dev/null 2>&1; then
    echo "found=true" >>"$GITHUB_OUTPUT"
    ds-plan --version
    exit 0
fi
# The version is a digest of all compiled files.
cd "$GITHUB_ACTION_PATH"
version=$(find Cargo.toml Cargo.lock src -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -c1-16)
{
    echo "found=false"
    echo "folder=$RUNNER_TEMP/ds-plan-built"
    echo "version=$version"
} >>"$GITHUB_OUTPUT"
