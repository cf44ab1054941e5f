#!/bin/bash
# The commit to copy to the cluster.   commit.sh CHECKOUT SITE [uncommitted]
# Prints the commit, then "dirty" if changes stay behind. With "uncommitted" they become a commit that no branch has;
# it is the same one as long as the files are the same.
set -euo pipefail
CDPATH='' cd -- "$1"
others=(. ":(exclude)site-configs/$2") # the site's folder is copied separately
stop() {
    echo "plumb: $*"
    exit 1
}
shallow=$(git rev-parse --is-shallow-repository) || stop "$1 is not a git checkout: onboard from a clone of Plumbline"
[ "$shallow" = false ] || stop "$1 is a shallow clone, which cannot be copied: git -C $1 fetch --unshallow"
head=$(git rev-parse HEAD)
if [ -z "$(git status --porcelain -- "${others[@]}")" ]; then
    echo "$head"
elif [ -z "${3-}" ]; then
    printf '%s\ndirty\n' "$head"
else
    index=$(mktemp)
    trap 'rm -f "$index"' EXIT
    cp -- "$(git rev-parse --git-path index)" "$index"
    export GIT_INDEX_FILE=$index
    git add --all -- "${others[@]}"
    date=$(git show -s --format=%cI HEAD)
    export GIT_AUTHOR_DATE=$date GIT_COMMITTER_DATE=$date
    export GIT_AUTHOR_NAME=plumbline GIT_AUTHOR_EMAIL=none GIT_COMMITTER_NAME=plumbline GIT_COMMITTER_EMAIL=none
    git commit-tree -p HEAD -m "uncommitted changes on the control machine" "$(git write-tree)"
fi
