#!/bin/bash
# The hook of OpenPBS that runs the health check on all its nodes; prints changed if something did. The hook is stdin.
#   pbs.sh present|absent SECONDS-BETWEEN-CHECKS SECONDS-OF-A-CHECK      (on the server's host, as a manager)
set -euo pipefail
state=$1 every=$2 seconds=$3
name=plumb_check
# shellcheck source=/dev/null
. "${PBS_CONF_FILE:-/etc/pbs.conf}"
PATH=$PATH:$PBS_EXEC/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/hook.py"

# The attributes that it is to have; the alarm ends a check that hangs.
wanted() {
    printf '%s\n' 'event = exechost_periodic' "freq = $every" "alarm = $((seconds + 30))"
}

hooks=$(qmgr -c "list hook") # ends the script where the server does not answer
known=$(sed -n 's/^Hook //p' <<<"$hooks" | grep -x "$name" || true)
if [ "$state" = absent ]; then
    [ -z "$known" ] || {
        qmgr -c "delete hook $name"
        echo changed
    }
    exit
fi
if [ -z "$known" ]; then
    qmgr -c "create hook $name"
    echo changed
fi
has=$(qmgr -c "list hook $name")
wanted | while read -r attribute; do
    grep -qx " *$attribute" <<<"$has" || {
        qmgr -c "set hook $name $attribute"
        echo changed
    }
done
if ! qmgr -c "export hook $name application/x-python default" 2>/dev/null | cmp -s - "$folder/hook.py"; then
    qmgr -c "import hook $name application/x-python default $folder/hook.py" >/dev/null
    echo changed
fi
