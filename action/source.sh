#!/usr/bin/env bash
# Prints a digest of all files that are compiled.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
find Cargo.toml Cargo.lock build crates src -type f -print0 | LC_ALL=C sort -z |
    xargs -0 action/sha256.sh | action/sha256.sh | cut -c1-16
