#!/bin/bash
# Is there room below ROOT, and (with a third argument) the plumb command?   space.sh ROOT MIB [plumb]
set -euo pipefail
root=$1 wanted=$2
if [ -n "${3-}" ] && [ ! -x "$root/.venv/bin/plumb" ]; then
    echo "no $root/.venv/bin/plumb: run make venv"
    exit 1
fi
[ ! -d "$root/stacks" ] || exit 0
place=$root
while [ ! -d "$place" ]; do place=$(dirname -- "$place"); done
free=$(df -Pm -- "$place" | awk 'NR == 2 {print $4}')
if [ "$free" -lt "$wanted" ]; then
    echo "$free MiB are free in $place, $wanted are needed: free some space"
    exit 1
fi
