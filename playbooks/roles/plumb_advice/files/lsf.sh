#!/bin/bash
# Job starter and post-execution command of queues in LSF's lsb.queues; prints changed if something did. What a site has
# itself stays.
#   lsf.sh FOLDER present|absent present|absent FILE QUEUE…      (of the starter, of the command; on the master host)
set -euo pipefail
folder=$1 starter=$2 end=$3 file=$4
shift 4
new=$(mktemp)
trap 'rm -f "$new"' EXIT
awk -v folder="$folder" -v starter="$starter" -v end="$end" -v queues="$*" '
    BEGIN { for (count = split(queues, list, " "); count; count--) missing[list[count]]; wanted = starter == "present" }
    index($0, "= " folder "/") { next }
    { line = toupper($0); value = $0; sub(/^[^=]*=[ \t]*/, "", value) }
    line ~ /^[ \t]*BEGIN[ \t]+QUEUE/ { name = ""; split("", own) }
    line ~ /^[ \t]*QUEUE_NAME[ \t]*=/ { name = value; sub(/[ \t#].*/, "", name) }
    line ~ /^[ \t]*JOB_STARTER[ \t]*=/ { own["JOB_STARTER"] = value }
    line ~ /^[ \t]*POST_EXEC[ \t]*=/ { own["POST_EXEC"] = value }
    line ~ /^[ \t]*END[ \t]+QUEUE/ && name in missing {
        delete missing[name]
        add("JOB_STARTER", starter, "starter")
        add("POST_EXEC", end, "end")
    }
    { print }
    function add(key, state, program) {
        if (state != "present") return
        if (key in own) fail("queue " name " has a " key " of its own, which stays: " own[key])
        print key " = " folder "/" program
    }
    function fail(text) { print "plumb: " text > "/dev/stderr"; failed = 1; exit 1 }
    END { if (!failed && wanted) for (name in missing) fail("there is no queue " name) }
' "$file" >"$new"
# a run that was interrupted before LSF read the file is made up for
[[ $(bqueues -l "$@") == *"$folder"/starter* ]] && known=present || known=absent
[ "$known" != "$starter" ] || ! cmp -s "$file" "$new" || exit 0
cat "$new" >"$file" # which keeps its owner and mode
badmin reconfig -f >&2
echo changed
