#!/bin/bash
# May ROOT be removed? Prints gone if there is none, mine if onboarding made it, and ends with 1 otherwise.   mine.sh ROOT
set -euo pipefail
root=$1
[ -e "$root" ] || { echo gone && exit 0; }
if [ "$root" -ef "$HOME" ] || [ "$root" -ef / ] || [ ! -f "$root/.git/plumbline" ] || [ -L "$root" ]; then
    echo "plumb: $root was not made by onboarding (there is no .git/plumbline in it): remove it yourself if it is no longer needed"
    exit 1
fi
# a home that somebody has inside, or anybody's
while IFS=: read -r _ _ _ _ _ home _; do
    case "$home/" in "$root"/*)
        echo "plumb: $home is a home, in $root: remove the folder yourself if it is no longer needed"
        exit 1
        ;;
    esac
done < <(getent passwd)
echo mine
