"""Run by ``spack python``: which packages of a lock have another content than the hash they stand under.

Spack itself takes the hashes of a lock as they stand there. Here each package's hash is computed again from its
content, as Spack does it when it concretizes. Prints ``changed HASH`` for each that differs,
then ``compared N``.
"""

import json
import sys

import spack.deptypes
import spack.hash_types
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
    if spec.external:
        spec.namespace = None  # Spack computes the hash of an external before it gives it a namespace
    if spec.spec_hash(spack.hash_types.dag_hash) != digest:
        print(f"changed {digest}")
print(f"compared {len(specs)}")
