#!/bin/sh
# shellcheck disable=SC2154 # mark and say are those of health.sh, which reads this file
# Grid Engine: qselect(1), qstat(1), qmod(1). A queue on a node has no reason: what was disabled here, and why, is kept in a file of the cell.
notes=${SGE_ROOT:-/var/lib/gridengine}/${SGE_CELL:-default}/common/plumb-drained

# The queues on a node that are not disabled.
open_queues() {
    all=$(qselect -q "*@$1") || return
    off=$(qselect -q "*@$1" -qs d) || off='' # the status is 1 if there is none
    for queue in $all; do
        case "
$off
" in *"
$queue
"*) ;; *) echo "$queue" ;; esac
    done
}

jobs() {
    found=$(qstat -u '*' -s rs -q "*@$1") || exit 2
    [ -z "$found" ] || {
        echo "job $(echo "$found" | awk 'NR == 3 { print $1 }')"
        exit 1
    }
}

drain() {
    [ ! -e "$notes/$1" ] || {
        echo "$1 is drained already: left as it is"
        return
    }
    found=$(open_queues "$1") || exit 2
    [ -n "$found" ] || {
        echo "$1 has no queue that takes jobs: left as it is"
        return
    }
    # the note first: what is disabled without one would never be enabled again
    mkdir -p "$notes" && printf '%s\n%s\n' "$2" "$found" >"$notes/$1" || exit 2
    echo "$found" | while read -r queue; do qmod -d "$queue" || exit 2; done && echo "$1 is drained: $2"
}

resume() {
    [ -e "$notes/$1" ] || return 0
    sed 1d "$notes/$1" | while read -r queue; do qmod -e "$queue" || exit 2; done || exit 2
    rm "$notes/$1" && echo "$1 takes jobs again"
}
