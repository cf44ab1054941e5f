#!/bin/bash
# A git bundle of one commit and all before it.   bundle.sh CHECKOUT COMMIT FILE
set -euo pipefail
CDPATH='' cd -- "$1"
ref=refs/plumbline/onboard-$$ # a bundle holds references, and a commit without a branch has none
trap 'git update-ref -d "$ref"' EXIT
git update-ref "$ref" "$2"
git bundle create --quiet "$3" "$ref"
