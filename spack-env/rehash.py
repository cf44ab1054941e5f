"""Run by ``spack python``: which packages of a lock have another content than the hash they stand under.

Spack itself takes the hashes of a lock as they stand there. Here each package's hash is computed again from its
content, as Spack does it when it concretizes. Prints ``changed HASH`` for each that differs, ``recipe HASH`` for each
whose recipe is another one now (those of Spack's own repository are in a checkout of a known commit), ``archive HASH
sha256:DIGEST URL`` for each whose recipe is not of Spack's own repository and names an archive, ``absent HASH PREFIX``
for each external without any of the programs by which Spack finds it, then ``compared N``.
"""

import json
import pathlib
import re
import sys

import spack.deptypes
import spack.fetch_strategy
import spack.hash_types
import spack.repo
from spack.spec import SpecfileV5

with open(sys.argv[1], encoding="utf-8") as stream:
    nodes = json.load(stream)["concrete_specs"]
specs = {digest: SpecfileV5.from_node_dict(node) for digest, node in nodes.items()}
for digest, node in nodes.items():
    for _, needed, kinds, _, virtuals, direct in SpecfileV5.dependencies_from_node_dict(node):
        flag = spack.deptypes.canonicalize(kinds)
        specs[digest]._add_dependency(specs[needed], depflag=flag, virtuals=virtuals, direct=direct)
for spec in specs.values():
    spec._mark_root_concrete()
for digest, spec in specs.items():
    if not spec.external and spec.namespace != "builtin":
        package = spack.repo.PATH.get_pkg_class(f"{spec.namespace}.{spec.name}")(spec)
        if package.content_hash() != nodes[digest]["package_hash"]:
            print(f"recipe {digest}")
        source = spack.fetch_strategy.for_package_version(package)
        if getattr(source, "digest", None):
            print(f"archive {digest} sha256:{source.digest} {source.url}")
for digest, spec in specs.items():
    # compilers are compared by their version elsewhere
    if spec.external_path and not spec.extra_attributes.get("compilers"):
        patterns = getattr(spack.repo.PATH.get_pkg_class(f"{spec.namespace}.{spec.name}"), "executables", ())
        programs = [file.name for file in pathlib.Path(spec.external_path).glob("*bin/*")]
        if patterns and not any(re.search(pattern, name) for pattern in patterns for name in programs):
            print(f"absent {digest} {spec.external_path}")
hashes = {digest: {spec.spec_hash(spack.hash_types.dag_hash)} for digest, spec in specs.items()}
for digest, spec in specs.items():
    if spec.external:  # Spack 1.1 computes the hash of an external before it gives it a namespace, 1.2 after that
        spec.namespace = None
        hashes[digest].add(spec.spec_hash(spack.hash_types.dag_hash))
    if digest not in hashes[digest]:
        print(f"changed {digest}")
print(f"compared {len(specs)}")
