#!/bin/bash
# becomes the program
exec "$(dirname "$0")/threads" one
