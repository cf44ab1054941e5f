"""The address of a network interface of this host. Facts of a node leave it out: addresses are not published."""

from __future__ import annotations

import fcntl
import socket
import struct

_SIOCGIFADDR = 0x8915


def address(interface: str) -> str | None:
    """Its IPv4 address, by netdevice(7); None where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            response = fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(response[20:24])
