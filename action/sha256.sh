#!/usr/bin/env bash
# sha256sum, or what every macOS has in its place. Both take files or standard input, and print the same.
set -euo pipefail

if command -v sha256sum >/dev/null 2>&1; then
    exec sha256sum "$@"
fi
exec shasum -a 256 "$@"
