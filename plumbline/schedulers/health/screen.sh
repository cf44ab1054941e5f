#!/bin/sh
# One check of a screen, in a job on the node: its result is left in a file that the nodes share.
#   screen.sh FOLDER NODE PROGRAM [OPTION…]     NODE: its name; '-' for the one that the scheduler gives it
# PROGRAM and the options are plumb-check's. It ends with 0 if there is a result, whatever that says.
set -u
folder=$1 node=$2
shift 2
[ "$node" != - ] || node=${SLURMD_NODENAME:-$(uname -n)}
node=${node%%.*}
"$@" --node "$node" --output "$folder/$node.json"
test -s "$folder/$node.json"
