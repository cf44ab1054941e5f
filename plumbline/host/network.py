"""What the kernel says of a network interface here and facts of a node leave out: addresses are not published."""

from __future__ import annotations

import fcntl
import socket
import struct

_SIOCGIFADDR = 0x8915


def address(interface: str) -> str | None:
    """Its IPv4 address, by netdevice(7); None where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            told = fcntl.ioctl(asked, _SIOCGIFADDR, struct.pack("256s", interface.encode()[:15]))
        except OSError:
            return None
    return socket.inet_ntoa(told[20:24])
