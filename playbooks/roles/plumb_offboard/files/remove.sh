#!/bin/bash
# Remove ROOT, last the note that onboarding made it: a removal that breaks off can be done again.   remove.sh ROOT
set -euo pipefail
(
    CDPATH='' cd -- "$1"
    find . -mindepth 1 ! -path ./.git ! -path ./.git/plumbline -delete
)
rm -r -- "$1"
