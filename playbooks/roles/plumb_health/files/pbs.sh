#!/bin/bash
# A hook of OpenPBS, whose text is stdin; prints changed if something did.
#   pbs.sh present|absent NAME ATTRIBUTE…      (on the server's host, as a manager; as `list hook` has attributes)
set -euo pipefail
state=$1 name=$2
shift 2
# shellcheck source=/dev/null
. "${PBS_CONF_FILE:-/etc/pbs.conf}"
PATH=$PATH:$PBS_EXEC/bin
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/hook.py"

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
for attribute; do
    grep -qx " *$attribute" <<<"$has" || {
        qmgr -c "set hook $name $attribute"
        echo changed
    }
done
if ! qmgr -c "export hook $name application/x-python default" 2>/dev/null | cmp -s - "$folder/hook.py"; then
    qmgr -c "import hook $name application/x-python default $folder/hook.py" >/dev/null
    echo changed
fi
