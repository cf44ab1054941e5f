#!/bin/bash
# One entry in the user's scrontab; what else is there stays.   scrontab.sh SITE [LINE]     Without LINE it is removed.
set -euo pipefail
command -v scrontab >/dev/null || {
    [ -n "${2-}" ] || exit 0 # no scrontab, no entry
    echo "plumb: there is no scrontab on $(hostname): say plumb_ci_nightly: cron or timer"
    exit 1
}
mark="# plumbline $1"
present=$(scrontab -l 2>/dev/null || true)
# the entry is the mark and the line after it
others=$(awk -v mark="$mark" '$0 == mark {skip = 1; next} skip {skip = 0; next} {print}' <<<"$present")
wanted=$others
[ -z "${2-}" ] || wanted=${others:+$others$'\n'}$mark$'\n'$2
[ "$wanted" != "$present" ] || exit 0
printf '%s\n' "$wanted" | scrontab -
echo changed
