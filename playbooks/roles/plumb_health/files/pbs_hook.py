"""Plumbline's health check as a hook of OpenPBS, which runs it on each node (exechost_periodic; docs/health.md).

A node may not change itself at the server, but its hook may. The Python is that of PBS, 3.6 or newer.
"""

import subprocess

import pbs

CHECK = "/usr/local/lib/plumbline/hook"

node = pbs.get_local_nodename()
done = subprocess.run([CHECK, node], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)  # noqa: UP022
said, faults = (text.decode("utf-8", "replace").strip() for text in (done.stdout, done.stderr))
if faults:
    pbs.logmsg(pbs.EVENT_DEBUG, faults)
word, _, reason = said.partition(" ")
if word == "offline":
    pbs.event().vnode_list[node].state = pbs.ND_OFFLINE
    pbs.event().vnode_list[node].comment = reason
elif word == "free":
    pbs.event().vnode_list[node].state = pbs.ND_FREE
    pbs.event().vnode_list[node].comment = None
