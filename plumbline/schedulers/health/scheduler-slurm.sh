#!/bin/sh
# shellcheck disable=SC2154 # mark and say are those of health.sh, which reads this file
# Slurm: squeue(1), sinfo(1), scontrol(1). A job that is completing has ended: its epilog may ask.
# Where SLURM_CLUSTERS is set, answers have a heading.
headings='/^CLUSTER: /d; /^$/d'

jobs() {
    found=$(squeue -h -w "$1" -t RUNNING,SUSPENDED,STOPPED,CONFIGURING,SIGNALING,STAGE_OUT -o %A) || exit 2
    found=$(echo "$found" | sed "$headings")
    [ -z "$found" ] || {
        echo "job $(echo "$found" | head -n 1)"
        exit 1
    }
}

# STATE|REASON of a node; without the signs behind the state.
state_of() {
    sinfo -h -N -n "$1" -o '%T|%E' | sed "$headings" | head -n 1 | sed 's/^\([a-z_]*\)[^|]*/\1/'
}

drain() {
    found=$(state_of "$1")
    case $found in
    drain* | down* | fail* | error* | maint* | reboot*)
        echo "$1 is $found: left as it is"
        return
        ;;
    '')
        say "Slurm does not know $1"
        exit 2
        ;;
    esac
    scontrol update "nodename=$1" state=drain "reason=$2" && echo "$1 is drained: $2"
}

resume() {
    case $(state_of "$1") in
    drain*"|$mark"*) scontrol update "nodename=$1" state=resume && echo "$1 takes jobs again" ;;
    esac
}
