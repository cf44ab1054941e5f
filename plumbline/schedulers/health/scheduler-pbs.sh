#!/bin/sh
# shellcheck disable=SC2154,SC2317,SC2329 # mark and say are those of health.sh, which reads this file and calls its functions
# OpenPBS: pbsnodes(8B). A hook has the system's folders in its PATH only.
conf=${PBS_CONF_FILE:-/etc/pbs.conf}
if [ -r "$conf" ]; then
    # shellcheck source=/dev/null
    . "$conf"
    PATH=$PATH:${PBS_EXEC:-/opt/pbs}/bin
fi

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

# Whether the node may be drained: it takes jobs, and nobody has noted anything there.
may_drain() {
    found=$(attribute "$1" state)
    case $found in
    *offline* | *down* | *unknown*)
        echo "$1 is $found: left as it is"
        return 1
        ;;
    '')
        say "PBS does not know $1"
        exit 2
        ;;
    esac
}

# Whether it was drained here.
may_resume() {
    case "$(attribute "$1" state)|$(attribute "$1" comment)" in
    *offline*"|$mark"*) ;;
    *) return 1 ;;
    esac
}

drain() {
    may_drain "$1" || return 0
    pbsnodes -o -C "$2" "$1" && echo "$1 is drained: $2"
}

resume() {
    may_resume "$1" || return 0
    pbsnodes -r -C '' "$1" && echo "$1 takes jobs again"
}

# What PBS is to do with this node, for its hook: "offline REASON", "free", or nothing. pbsnodes may change a node where
# the server's managers are only: on the node itself the hook does it.
hook() {
    drain() {
        may_drain "$1" >&2 || return 0
        echo "offline $2"
    }
    resume() {
        may_resume "$1" || return 0
        echo free
    }
    act "$@"
}
