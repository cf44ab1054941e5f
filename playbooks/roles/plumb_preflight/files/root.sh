#!/bin/bash
# Is ROOT ours to use: absent, empty, or a checkout of Plumbline, and can it be written?   root.sh ROOT [make]
set -euo pipefail
root=$1
stop() {
    echo "plumb: $*"
    exit 1
}
if [ ! -e "$root" ] && [ -n "${2-}" ]; then
    mkdir -p -- "$(dirname -- "$root")" || stop "$root cannot be made: name another plumb_root"
    mkdir -m 0750 -- "$root" || stop "$root cannot be made: name another plumb_root"
    echo made
fi
[ -e "$root" ] || exit 0
[ -d "$root" ] || stop "$root is not a folder: name another plumb_root"
[ ! "$root" -ef "$HOME" ] && [ ! "$root" -ef / ] || stop "$root is a home or all of the machine: name a separate folder as plumb_root"
if [ -n "$(find "$root" -mindepth 1 -maxdepth 1 ! -name '.plumb-probe.*' -print -quit)" ] &&
    [ ! -e "$root/.git/plumbline" ] && [ ! -e "$root/playbooks/onboard.yml" ]; then
    stop "$root holds other files than a checkout of Plumbline: name another plumb_root"
fi
[ -w "$root" ] || stop "$(id -un) may not write $root: fix its permissions, or name another plumb_root"
