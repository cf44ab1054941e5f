#!/bin/bash
# Grid Engine's load sensor for plumb-check on a host, and the queues that it closes; prints changed if something did.
#   sge.sh present|absent HOST QUEUE…      (on an administrative host)
set -euo pipefail
state=$1 host=$2
shift 2
sensor=/usr/local/lib/plumbline/sensor
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The host's own configuration without our sensor; other sensors stay.
own() {
    { qconf -sconf "$host" 2>/dev/null || true; } | sed '/^#/d; /^$/d' | awk -v ours="$sensor" '
        $1 == "load_sensor" { n = split($2, all, ","); kept = ""
            for (i = 1; i <= n; i++) if (all[i] != ours && all[i] != "none") kept = kept (kept ? "," : "") all[i]
            if (kept) print "load_sensor", kept
            next }
        { print }'
}

# Whether the host has a configuration of its own.
known() { qconf -sconf "$host" >/dev/null 2>&1; }

# A daemon does not notice that a configuration of its host appears or disappears (8.1.9) until the global one is written.
announce() {
    qconf -sconf global | sed '/^#/d' >"$folder/global"
    qconf -Mconf "$folder/global"
}

# Whether the daemon has a value of the sensor.
reports() { qhost -F plumb_bad -h "$host" | grep -q 'plumb_bad='; }

thresholds() {
    for queue in "$@"; do
        has=$(qconf -sq "$queue" | grep -c '^load_thresholds.*plumb_bad=1' || true)
        case $state$has in
        present0) qconf -aattr queue load_thresholds plumb_bad=1 "$queue" >/dev/null ;;
        absent1) qconf -dattr queue load_thresholds plumb_bad=1 "$queue" >/dev/null ;;
        *) continue ;;
        esac
        echo changed
    done
}

# A queue takes no jobs on a host of which the value of a threshold is not known: the value comes first, and goes last.
if [ "$state" = absent ]; then thresholds "$@"; fi
file=$folder/$host
own >"$file"
if [ "$state" = present ]; then
    others=$(awk '$1 == "load_sensor" { print $2 }' "$file")
    sed -i '/^load_sensor/d' "$file"
    echo "load_sensor ${others:+$others,}$sensor" >>"$file"
    if ! qconf -sc | grep -q '^plumb_bad '; then
        { qconf -sc && echo 'plumb_bad plumb_bad INT >= NO NO 0 0'; } >"$folder/complexes"
        qconf -Mc "$folder/complexes" >/dev/null
        echo changed
    fi
fi
{ qconf -sconf "$host" 2>/dev/null || true; } | sed '/^#/d; /^$/d' | tr -s ' ' | sort >"$folder/now"
if ! diff -q "$folder/now" <(tr -s ' ' <"$file" | sort) >/dev/null; then
    if ! known; then
        qconf -Aconf "$file"
        announce
    elif [ -s "$file" ]; then
        qconf -Mconf "$file"
    else
        qconf -dconf "$host"
        announce
    fi >/dev/null
    echo changed
fi
[ "$state" = present ] || exit 0
# two load report intervals, 40 s each where nobody changed them, and a check
left=${PLUMB_SENSOR_WAIT:-180}
until reports; do
    if [ "$left" -eq 0 ]; then
        echo "the load sensor of $host reports nothing: no queue got the threshold (see the execution daemon's messages)" >&2
        exit 1
    fi
    left=$((left - 1))
    sleep 1
done
thresholds "$@"
