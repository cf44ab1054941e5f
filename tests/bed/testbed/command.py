"""The command line."""

import argparse
import contextlib
import fcntl
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace

from testbed import access, bed, faults
from testbed.host import BedError, obstacle, say
from testbed.layout import LOCK, Settings, load


def parser() -> argparse.ArgumentParser:
    """All commands and options."""
    top = argparse.ArgumentParser(prog="bed", description="A small Slurm cluster of booted hosts on this machine.")
    commands = top.add_subparsers(dest="command", required=True)
    raised = commands.add_parser("up", help="raise it; options not given are as they were, or the defaults")
    raised.add_argument("--nodes", type=int, metavar="N", help="compute nodes, 1 to 6 (default: 2)")
    raised.add_argument("--shape", metavar="RATE", help="rate of every link, as 1gbit; none: unlimited (default)")
    way = raised.add_mutually_exclusive_group()
    way.add_argument("--route", dest="route", action="store_const", const=True, help="registries by NAT (default)")
    way.add_argument("--no-route", dest="route", action="store_const", const=False, help="no way out of the bed")
    raised.add_argument("--fake-topology", metavar="TEXT", help="what Slurm believes of each node; none: the truth")
    raised.add_argument("--scheduler", choices=("slurm", "sge", "ssh"), help="ssh: none (default: slurm)")
    raised.add_argument("--flavor", choices=("slurm", "fresh"), help="packages in the image (default: slurm)")
    commands.add_parser("down", help="remove all of it but the image")
    commands.add_parser("status", help="say how it is; exit status 1 unless all hosts are up")
    shell = commands.add_parser("ssh", help="a shell or a command on a host, as bench or USER@HOST")
    shell.add_argument("node")
    shell.add_argument("words", nargs=argparse.REMAINDER, metavar="COMMAND")
    broken = commands.add_parser("fault", help="break something")
    kinds = broken.add_subparsers(dest="fault", required=True)
    for name, fault in faults.FAULTS.items():
        kind = kinds.add_parser(name, help=fault.what)
        for argument in fault.arguments:
            kind.add_argument(argument)
    healed = commands.add_parser("heal", help="undo the faults of a node, or all of them")
    healed.add_argument("node", nargs="?")
    return top


@contextlib.contextmanager
def locked() -> Iterator[None]:
    """One command at a time changes the bed; the second waits."""
    with LOCK.open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another command is changing the bed: waiting for it")
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def wanted(options: argparse.Namespace) -> Settings:
    """Settings for `up`: what is not given stays as it was."""
    given = {
        name: getattr(options, name) for name in ("nodes", "shape", "route", "fake_topology", "flavor", "scheduler")
    }
    given = {name: "" if value == "none" else value for name, value in given.items() if value is not None}
    return replace(load() or Settings(), **given)


def act(options: argparse.Namespace) -> int:
    """Do what is asked; the exit status. Raises BedError."""
    if options.command == "status":
        whole, text = bed.status()
        print(text)
        return 0 if whole else 1
    if options.command == "ssh":
        return access.interactive(options.node, options.words)
    problem = obstacle()
    if problem:
        raise BedError(problem)
    with locked():
        if options.command == "up":
            bed.up(wanted(options))
        elif options.command == "down":
            bed.down()
            say("down")
        elif options.command == "heal":
            faults.heal(options.node)
        else:
            fault = faults.FAULTS[options.fault]
            fault.act(*[getattr(options, name) for name in fault.arguments])
            say(f"fault: {options.fault}")
    return 0


def main(arguments: Sequence[str]) -> int:
    """The program: 0 done, 1 `status` of a bed that is not whole, 2 could not (one line says why), 130 interrupted."""
    try:
        return act(parser().parse_args(arguments))
    except BedError as fault:
        print(f"bed: {' '.join(str(fault).split())}", file=sys.stderr)
        return 2
    except OSError as fault:
        print(f"bed: {fault.strerror or fault} ({fault.filename})", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("bed: interrupted; `bed down` removes what is there", file=sys.stderr)
        return 130
