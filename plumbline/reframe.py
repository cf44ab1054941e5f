"""The suite in a ReFrame configuration of a centre's own (docs/inside-reframe.md).

To import this takes nothing but Python, 3.6 too: if the Python of a centre's ReFrame cannot load the rest, ReFrame
would drop every test with a warning and call that a success. So it ends with the cure instead.
"""

import importlib
import sys
from typing import Any, Dict, Mapping, Optional


def extend(
    site_configuration: Mapping[str, Any],
    system: str,
    environments: Mapping[str, str],
    *,
    site: Optional[str] = None,
    partitions: Optional[Mapping[str, str]] = None,
) -> Dict[str, Any]:
    """A copy of a ReFrame configuration whose ``system`` can run the tests of the suite.

    ``environments`` maps environments of the system to installed stacks: ``{"PrgEnv-gnu": "openmpi"}``. Each gets the
    feature ``plumb_stack``, on this system alone. The partitions get the facts of those with the same name in the site
    folder ``site``, which ``plumb site init`` made; by default it has the name of the system. ``partitions`` maps names
    that differ: ``{"THEIRS": "OURS"}``. Everything else stays: launcher, scheduler, access, modules, other systems.

    Ends Python with one line and exit status 1 where the system, one of the environments, the site folder or a stack is
    not there, and where no partition has facts.
    """
    extended: Dict[str, Any] = _call("settings", "extend", site_configuration, system, environments, site, partitions)
    return extended


def configuration() -> Dict[str, Any]:
    """ReFrame's configuration of all site folders and installed stacks: ``site-configs/settings.py``."""
    made: Dict[str, Any] = _call("settings", "configuration")
    return made


def require_stacks() -> None:
    """End ReFrame with one line unless an environment of its system has a stack."""
    _call("stage", "require_stacks")


def _call(module: str, name: str, *arguments: Any) -> Any:
    try:
        from plumbline.base.errors import PlumbError

        return getattr(importlib.import_module("plumbline.measure.reframe." + module), name)(*arguments)
    except (AttributeError, ImportError, SyntaxError) as error:  # an older ReFrame lacks names
        cure = "run Plumbline's ReFrame (. ./activate), which takes -C FILE too, or install plumbline-hpc[campaign]"
        sys.exit(f"plumb: the Python of this ReFrame cannot load the suite: {error} ({sys.executable}): {cure}")
    except PlumbError as error:
        sys.exit(f"plumb: {error}")
