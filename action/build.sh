#!/usr/bin/env bash
# Builds ds-plan and ds-apply from this action's own source, unless they are cached; adds them to
# PATH.
set -euo pipefail

if ! [ -x "$ACTION_BUILT/bin/ds-plan" ]; then
    rust=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$GITHUB_ACTION_PATH/Cargo.toml")
    rustup toolchain install "$rust" --profile minimal
    cargo "+$rust" install --locked --path "$GITHUB_ACTION_PATH" --root "$ACTION_BUILT"
fi
echo "$ACTION_BUILT/bin" >>"$GITHUB_PATH"
