"""The facts of a host: files of /proc and /sys, its devices, its energy, its processes.

:mod:`plumbline.host.collector` reads the files and makes one document of the host. It also runs alone, on a node.
"""
