#!/bin/sh
# Health checks of a node by plumb-check, and what follows from them, for one scheduler.
#   health.sh SCHEDULER jobs NODE             0: no job is on the node, 1: one is (printed), 2: nobody can say
#   health.sh SCHEDULER drain NODE REASON     no new jobs on the node; what somebody else wrote there stays
#   health.sh SCHEDULER resume NODE           jobs again, if only this has drained it
#   health.sh SCHEDULER check [OPTION…]       check this node, unless that was done lately; drain or resume it
#   health.sh sge sensor [OPTION…]            Grid Engine's load sensor: plumb_bad is 1 while this node is bad
#   health.sh pbs hook NODE [OPTION…]         for a hook of PBS on the node: what it is to do
# Options of check, sensor and hook are plumb-check's. It has beside this file: plumb-check, node.class. No Python, no compiler, no network but the scheduler's.
set -u
folder=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd) || exit 2
# what begins a reason of ours
mark='plumb-check: '
# seconds until the node is measured again; a node that was found slow once is measured again at the next call
: "${PLUMB_CHECK_EVERY:=86400}" "${PLUMB_CHECK_STATE:=/run/plumb-check}"
LC_ALL=C
export LC_ALL

say() {
    echo "plumb health: $*" >&2
}

# The state, the rounds and the line of a result in JSON, each on a line; the texts in it have no line breaks.
parts() {
    sed -n 's/.*"age":\([0-9.]*\),"state":"\([a-z]*\)","line":"\(\([^"\\]\|\\.\)*\)".*/\1\n\2\n\3/p' | head -n 3
}

# plumb-check's result of a new measurement, or of the last one.
result() {
    "$folder/plumb-check" --class "$folder/node.class" --state "$PLUMB_CHECK_STATE" --form json "$@"
}

# Decide what this node is: prints its state and a line. A figure is only called bad by two measurements in a row, at
# two calls, so that something that lasts as long as a check drains no node.
look() {
    last=$(result --last | parts)
    age=$(echo "$last" | sed -n '1{s/\..*//;p;}')
    suspect=$PLUMB_CHECK_STATE/suspect
    if [ "$(echo "$last" | sed -n 2p)" = ok ] && [ "${age:-0}" -lt "$PLUMB_CHECK_EVERY" ] && [ ! -e "$suspect" ]; then
        echo "$last" | sed 1d
        return
    fi
    now=$(result "$@" | parts | sed 1d)
    case $(echo "$now" | sed -n 1p) in
    bad)
        if [ -e "$suspect" ]; then
            echo "$now"
        elif echo "$now" | sed -n 2p >"$suspect"; then
            printf 'doubt\nfound once: %s\n' "$(echo "$now" | sed -n 2p)"
        else # nothing can be kept: it stays at once
            printf 'doubt\nfound, and %s cannot be written\n' "$suspect"
        fi
        ;;
    ok)
        rm -f "$suspect"
        echo "$now"
        ;;
    '') printf 'doubt\nplumb-check said nothing\n' ;;
    *) echo "$now" ;;
    esac
}

# This node as the scheduler calls it; the script of a scheduler may know better.
own_name() {
    echo "${SLURMD_NODENAME:-$(uname -n | sed 's/\..*//')}"
}

check() {
    own=$(own_name) || {
        say "the scheduler does not say what this node is called"
        return 0
    }
    act "$own" "$@"
}

# Check the node that is named, and drain or resume it.
act() {
    node=$1
    shift
    found=$(look --node "$node" "$@")
    line=$(echo "$found" | sed -n 2p)
    case $(echo "$found" | sed -n 1p) in
    bad)
        say "$node is bad: $line"
        (drain "$node" "$mark$line") || say "$node could not be drained"
        ;;
    ok) (resume "$node") || say "$node could not be resumed" ;;
    busy) ;;
    *) say "$node: $line" ;;
    esac
    return 0 # Slurm starts no slurmd whose health check fails
}

# Lines of Grid Engine's load sensors: a report for each line that is read, until 'quit'.
sensor() {
    node=$(uname -n)
    bad=0
    while read -r word && [ "$word" != quit ]; do
        case $(look --node "${node%%.*}" "$@" | sed -n 1p) in
        bad) bad=1 ;;
        ok) bad=0 ;;
        esac
        printf 'begin\n%s:plumb_bad:%s\nend\n' "$node" "$bad"
    done
}

[ $# -ge 2 ] || {
    say "health.sh SCHEDULER jobs|drain|resume|check|sensor|hook …"
    exit 2
}
scheduler=$1 verb=$2
shift 2
[ -f "$folder/scheduler-$scheduler.sh" ] || {
    say "$scheduler cannot drain nodes"
    exit 2
}
# shellcheck source=/dev/null
. "$folder/scheduler-$scheduler.sh"
case $verb:$# in
jobs:1 | resume:1) ;;
drain:2) set -- "$1" "$mark${2#"$mark"}" ;;
check:* | sensor:* | hook:[1-9]*) ;;
*)
    say "$verb with $# words"
    exit 2
    ;;
esac
"$verb" "$@"
