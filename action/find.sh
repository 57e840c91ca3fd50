#!/usr/bin/env bash
# Looks for ds-plan on PATH. If it is missing, outputs what to install: the released archive of this
# source for this runner, if there is one, and the folder and version of a build from source.
set -euo pipefail

if command -v ds-plan >/dev/null 2>&1; then
    echo "found=true" >>"$GITHUB_OUTPUT"
    ds-plan --version
    exit 0
fi
case ${RUNNER_OS:-}-${RUNNER_ARCH:-} in
Linux-X64) target=x86_64-unknown-linux-musl ;;
Linux-ARM64) target=aarch64-unknown-linux-musl ;;
macOS-ARM64) target=aarch64-apple-darwin ;;
*) target=none ;;
esac
version=$("$GITHUB_ACTION_PATH/action/source.sh")
released=$GITHUB_ACTION_PATH/action/released
archive=
# A release of other source would not be what the action's commit says.
if grep -qxF "source $version" "$released"; then
    archive=$(grep -E "^[0-9a-f]{64}  ds-plan-[0-9A-Za-z.-]+-$target\.tar\.gz$" "$released" || true)
fi
{
    echo "found=false"
    echo "folder=$RUNNER_TEMP/ds-plan-built"
    echo "version=$version"
    echo "archive=${archive#*  }"
    echo "sha256=${archive%%  *}"
    echo "target=$target"
} >>"$GITHUB_OUTPUT"
