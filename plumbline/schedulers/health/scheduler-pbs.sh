#!/bin/sh
# shellcheck disable=SC2154 # mark and say are those of health.sh, which reads this file
# OpenPBS: pbsnodes(8B).
# One attribute of a node; empty without it.
attribute() {
    pbsnodes "$1" | sed -n "s/^ *$2 = //p"
}

jobs() {
    pbsnodes "$1" >/dev/null || exit 2
    found=$(attribute "$1" jobs)
    [ -z "$found" ] || {
        echo "job ${found%%/*}"
        exit 1
    }
}

drain() {
    found=$(attribute "$1" state)
    case $found in
    *offline* | *down* | *unknown*)
        echo "$1 is $found: left as it is"
        return
        ;;
    '')
        say "PBS does not know $1"
        exit 2
        ;;
    esac
    pbsnodes -o -C "$2" "$1" && echo "$1 is drained: $2"
}

resume() {
    case "$(attribute "$1" state)|$(attribute "$1" comment)" in
    *offline*"|$mark"*) pbsnodes -r -C '' "$1" && echo "$1 takes jobs again" ;;
    esac
}
