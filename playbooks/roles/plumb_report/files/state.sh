#!/bin/bash
# Is the page there and newer than every record? Prints none, old or new.   state.sh FOLDER
set -euo pipefail
CDPATH='' cd -- "$1" 2>/dev/null || { echo none && exit 0; }
records=(-type f \( -name '*.jsonl' -o -name '*.jsonl.gz' -o -name '*.parquet' \))
if [ -z "$(find . "${records[@]}" -print -quit)" ]; then
    echo none
elif [ ! -f report.html ] || [ -n "$(find . "${records[@]}" -newer report.html -print -quit)" ]; then
    echo old
else
    echo new
fi
