#!/bin/bash
# Starter method and epilog of Grid Engine's queues; prints changed if something did. What a site has itself stays.
#   sge.sh FOLDER present|absent present|absent QUEUE…      (of starter method and epilog; on an administrative host)
set -euo pipefail
folder=$1 starter=$2 end=$3
shift 3
export SGE_SINGLE_LINE=1
changes=()
for queue; do
    has=$(qconf -sq "$queue")
    for each in "$starter starter_method $folder/starter" "$end epilog $folder/end"; do
        read -r state name ours <<<"$each"
        value=$(awk -v name="$name" '$1 == name { sub(/^[^ ]+ +/, ""); print }' <<<"$has")
        case $state:$value in
        present:NONE) changes+=("$queue $name $ours") ;;
        absent:"$ours") changes+=("$queue $name NONE") ;;
        "present:$ours" | absent:*) ;;
        *)
            echo "plumb: queue $queue has a $name of its own, which stays: $value. Start $ours from it" >&2
            exit 1
            ;;
        esac
    done
done
for each in ${changes[@]+"${changes[@]}"}; do
    read -r queue name value <<<"$each"
    qconf -mattr queue "$name" "$value" "$queue" >/dev/null
    echo changed
done
