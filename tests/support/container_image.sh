#!/bin/bash
# container_image.sh STACK TARGET: a directory image TARGET from packages of this Debian, with MPICH, its launcher, our
# kernels, STREAM and the OSU ports; TARGET.yaml describes them for `plumb stack install container:TARGET`.
# STACK is the folder of the installed wheel stack mpich: the ports and mpi4py, whose wheel suits any MPI, are its.
set -euo pipefail
stack=$(realpath "$1") target=$2
suite=$(realpath "$(dirname "$0")/../..")
# shellcheck source=/dev/null
. /etc/os-release
read -r -a flags < <(python3 -c '
import json, sys
print(*json.load(open(sys.argv[1]))["benchmarks"]["stream"]["facts"]["flags"])' "$stack/manifest.json")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/src/osu"
cp -r "$suite/custom-kernels" "$stack/share/stream/stream.c" "$work/src/"
cp -r "$stack"/lib/python3*/site-packages/mpi4py "$work/src/"
for port in latency bw barrier; do
    { echo '#!/usr/bin/python3 -I' && cat "$stack/share/osu/osu_$port.py"; } >"$work/src/osu/osu_$port"
done
cat >"$work/src/make.sh" <<END
set -eu
# MPI_STATUSES_IGNORE of this MPICH is the pointer 1, which gcc takes for a buffer without room
cmake -S /src/custom-kernels/kernels -B /tmp/k -DMPI_C_COMPILER=mpicc -DCMAKE_C_FLAGS=-Wno-stringop-overflow
cmake --build /tmp/k --parallel
cmake --install /tmp/k --prefix /opt/bench
gcc ${flags[*]} -o /opt/bench/bin/stream /src/stream.c
mv /src/osu/* /opt/bench/bin/
chmod 755 /opt/bench/bin/*
mkdir -p /usr/lib/python3/dist-packages
# the wheel asks for MPICH by the name that it has elsewhere
ln -s libmpich.so.12 "/usr/lib/$(uname -m)-linux-gnu/libmpi.so.12"
mv /src/mpi4py /usr/lib/python3/dist-packages/
rm -rf /src /tmp/k
apt-get purge -qq -y --autoremove gcc libc6-dev cmake make pkg-config libhwloc-dev libmpich-dev
END

built=(gcc libc6-dev cmake make pkg-config libhwloc-dev libmpich-dev)
kept=(mpich libmpich12 python3-minimal libpython3-stdlib libgomp1 libhwloc15)
IFS=, include="${built[*]},${kept[*]}"
# shellcheck disable=SC2016 # mmdebstrap knows the folder
mmdebstrap --quiet --variant=minbase --include="$include" --customize-hook="copy-in '$work/src' /" \
    --customize-hook='chroot "$1" sh /src/make.sh' "$VERSION_CODENAME" "$target"

# shellcheck disable=SC2016
version=$(chroot "$target" dpkg-query -W -f '${Version}' libmpich12)
array=$(printf '%s\n' "${flags[@]}" | sed -n 's/^-DSTREAM_ARRAY_SIZE=//p')
{
    echo "stacks:"
    echo "  debian-mpich:"
    echo "    mpi: {family: mpich, version: ${version%%-*}}"
    echo "    launcher: {family: hydra, command: /usr/bin/mpiexec.hydra}"
    echo "    compiler: {name: gcc, version: '$VERSION_CODENAME'}"
    # else UCX takes munmap, and the witness does not see what memory a program frees
    echo "    environment: {UCX_MEM_EVENTS: 'no'}"
    echo "    benchmarks:"
    for program in "$target"/opt/bench/bin/*; do
        name=$(basename "$program") suite=kernels version=image facts='{}'
        case $name in
        stream) suite=stream version=5.10 facts="{array_elements: $array}" ;;
        osu_*) suite=osu version=mpi4py ;;
        esac
        echo "      $name: {suite: $suite, version: '$version', program: /opt/bench/bin/$name, facts: $facts}"
    done
} >"$target.yaml"
