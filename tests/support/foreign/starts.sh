#!/bin/sh
# starts the program and waits for it
"$(dirname "$0")/threads" one
echo "done"
