#!/bin/bash
# Installs the wheel that STARLING_WHEEL names into an environment of its folder, and puts that environment's bin in front of PATH for
# the following steps of a workflow.
set -euo pipefail

if [ -z "${STARLING_WHEEL:-}" ]; then
    echo "::error::STARLING_WHEEL is not set; set it to the address of the wheel of a Starling release"
    exit 1
fi
prefix=${RUNNER_TEMP:-$HOME}/starling

echo "::group::Installing $STARLING_WHEEL"
python3 -m venv "$prefix"
"$prefix/bin/pip" install --disable-pip-version-check --no-deps "$STARLING_WHEEL"
echo "::endgroup::"

echo "$prefix/bin" >>"$GITHUB_PATH"
printf 'mpi=starling\nprefix=%s\n' "$prefix" >>"$GITHUB_OUTPUT"

echo "::group::starling info"
"$prefix/bin/starling" info
echo "::endgroup::"
