#!/bin/bash
# little room for the program: in a control group whose processes file is $1, or by the shell's own limit
if [ $# -gt 0 ]; then echo $$ >"$1"; else ulimit -v 2000000; fi
exec "$(dirname "$0")/threads" hungry
