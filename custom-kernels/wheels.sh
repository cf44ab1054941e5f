#!/bin/bash
# Wheels for other machines, in build/dist: custom-kernels/wheels.sh ARCHITECTURE... (x86_64, aarch64)
# zig (`make wheels` puts it into build/zig) compiles the C tools for each architecture against glibc 2.28, of RHEL 8 and
# SLES 15 SP3, with hwloc, pinned by its SHA-256, inside. auditwheel reads the versions of all symbols and writes the tag.
set -euo pipefail
CDPATH='' cd -- "$(dirname -- "$0")/.."
zig=$PWD/build/zig python=$PWD/.venv/bin/python dist=$PWD/build/dist
export PATH=$PWD/.venv/bin:$PATH ZIG_GLOBAL_CACHE_DIR=$zig/cache ZIG_LOCAL_CACHE_DIR=$zig/cache

sources=$zig/sources/_source-cache/archive
compgen -G "$sources/*/*" >/dev/null || spack-env/debian-sources "$zig/sources" hwloc

# What finds the machine in /sys and in XML files, and no other library: as on a compute node.
hwloc() {
    [ ! -e "$2/lib/pkgconfig/hwloc.pc" ] || return 0
    rm -rf "$2"
    mkdir -p "$2/build"
    tar -xf "$sources"/*/* -C "$2/build" --strip-components 1
    CDPATH='' cd -- "$2/build"
    ./configure --quiet --host="$1-linux-gnu" --prefix="$2" --enable-static --disable-shared CFLAGS='-O2 -fPIC' \
        --disable-{cairo,cuda,gl,levelzero,libudev,libxml2,nvml,opencl,pci,readme,rsmi}
    make -s SUBDIRS='include hwloc' install
}

rm -rf "$dist"
for machine in "$@"; do
    export CC="$zig/ziglang/zig cc -target $machine-linux-gnu.2.28" LDFLAGS=-s
    hwloc=$zig/hwloc-$machine
    (hwloc "$machine" "$hwloc") >"$zig/hwloc-$machine.log" 2>&1 || { cat "$zig/hwloc-$machine.log" && exit 1; }
    export PKG_CONFIG_LIBDIR=$hwloc/lib/pkgconfig _PYTHON_HOST_PLATFORM=linux-$machine
    export CMAKE_ARGS="-DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=$machine"
    uv build --quiet --no-build-isolation --python "$python" --config-setting install.strip=false --out-dir "$dist/$machine"
    auditwheel repair --wheel-dir "$dist" "$dist/$machine"/*.whl
    mv "$dist/$machine"/*.tar.gz "$dist"
    rm -r "${dist:?}/$machine"
done
ls "$dist"
