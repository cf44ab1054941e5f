#!/bin/bash
# One checksum of all that decides what a smoke test runs.   state.sh ROOT SITE OPTION…
set -euo pipefail
CDPATH='' cd -- "$1"
site=$2
shift 2
{
    git rev-parse HEAD 2>/dev/null || echo "no commit"
    # references say what is expected, not what is run
    cat -- "site-configs/$site/site.yaml"
    find "site-configs/$site/topology" stacks -maxdepth 2 \( -name manifest.json -o -name '*.xml' \) -print0 | sort -z | xargs -0r sha256sum
    printf '%s\n' "$@"
} | sha256sum | cut -d' ' -f1
