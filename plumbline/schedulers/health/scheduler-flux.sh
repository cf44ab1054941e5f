#!/bin/sh
# shellcheck disable=SC2154 # mark and say are those of health.sh, which reads this file
# Flux: flux-jobs(1), flux-resource(1). On a node its system instance is asked.
jobs() {
    found=$(flux jobs -A -n -f running -o '{id}' --include="$1") || exit 2
    [ -z "$found" ] || {
        echo "job $(echo "$found" | head -n 1)"
        exit 1
    }
}

# By the broker of this node: Flux may know its hosts by names with a domain.
own_name() {
    rank=$(flux getattr rank) && flux hostlist --nth="$rank" instance
}

# STATE|REASON of a drained node; empty for one that is not.
drained() {
    flux resource drain -n -i "$1" -o '{state}|{reason}'
}

drain() {
    found=$(drained "$1") || exit 2
    [ -z "$found" ] || {
        echo "$1 is ${found%%|*} (${found#*|}): left as it is"
        return
    }
    flux resource drain "$1" "$2" && echo "$1 is drained: $2"
}

resume() {
    case $(drained "$1") in
    *"|$mark"*) flux resource undrain "$1" && echo "$1 takes jobs again" ;;
    esac
}
