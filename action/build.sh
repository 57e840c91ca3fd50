#!/usr/bin/env bash
# Builds ds-plan and ds-apply from this action's own source, unless they are cached; adds them to
# PATH. A cached program may be of a runner with a newer C library, and cannot start here.
set -euo pipefail

if ! "$ACTION_BUILT/bin/ds-plan" --version >/dev/null 2>&1; then
    rust=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$GITHUB_ACTION_PATH/Cargo.toml")
    rustup toolchain install "$rust" --profile minimal
    cargo "+$rust" install --locked --force --path "$GITHUB_ACTION_PATH" --root "$ACTION_BUILT"
fi
echo "$ACTION_BUILT/bin" >>"$GITHUB_PATH"
