#!/bin/bash
# What failed jobs said last.   output.sh ROOT
set -euo pipefail
CDPATH='' cd -- "$1/build/reframe"
echo "== the end of $PWD/campaign.out"
tail -n 25 campaign.out 2>/dev/null || echo "(there is none)"
# ReFrame keeps the stage folders of failed cases and removes the others
find stage -name 'rfm_*.err' -size +0 -newer reframe.log -printf '%T@ %p\n' 2>/dev/null |
    sort -rn | head -n 3 | cut -d' ' -f2- >.plumb-failed || true
[ -s .plumb-failed ] || find stage -name 'rfm_*.err' -size +0 -printf '%T@ %p\n' 2>/dev/null |
    sort -rn | head -n 3 | cut -d' ' -f2- >.plumb-failed || true
while read -r file; do
    echo "== $file"
    tail -n 10 -- "${file%.err}.out" 2>/dev/null || true
    tail -n 10 -- "$file"
done <.plumb-failed
rm -f .plumb-failed
