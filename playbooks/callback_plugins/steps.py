"""Output of the playbooks: one line for each step with its result and time, errors in full.

What a debug task says is for people: it is shown as it is, without -v. If the task's name begins with ``Warn`` it is
a warning, and shown at the end, where it is not scrolled away.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: steps
type: stdout
short_description: one line for each step
description:
  - Shows each task that did something as one line, with its result and its time.
"""

#: what ssh says when it cannot get in, and what to do
CURES = (
    (
        r"Permission denied",
        "the SSH key is refused: is it in authorized_keys there,"
        " are ansible_user and ansible_ssh_private_key_file right?",
    ),
    (
        r"Host key verification failed|HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the known one: compare it with the administrator's, then put it into known_hosts",
    ),
    (r"Could not resolve", "no such host: fix ansible_host in the inventory"),
    (r"timed out|refused|No route|unreachable", "nothing answers there: is the host up, and ansible_host right?"),
    (r"", "try the same login with ssh yourself"),
)
#: what Ansible says of a module that its Python there cannot run: 3.6 (``python3`` of RHEL 8), none, or no Python
OLD_PYTHON = (
    r"deserialization failed|MODULE FAILURE|No start of json|requires a minimum of Python|"
    r"future feature annotations|module interpreter .* not found|interpreter .* (?:does not exist|not found)"
)
PYTHON_CURE = (
    "the Python there does not run Ansible's own modules: it has to be 3.9 or newer. Set ansible_python_interpreter of"
    " this host in the inventory, such as /usr/bin/python3.11"
)
#: seconds after which a terminal sees again what runs
TICK_S = 5.0
COLOURS = {"ok": "green", "changed": "yellow", "failed": "red", "unreachable": "red"}


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """One line for each step."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "steps"

    def __init__(self) -> None:
        super().__init__()
        self.started = self.mark = time.monotonic()
        self.several = False
        self.groups = ""
        self.warnings: list[str] = []
        self.running = ""
        self.lock = threading.Lock()
        if sys.stdout.isatty():
            threading.Thread(target=self._tick, daemon=True).start()

    def v2_playbook_on_play_start(self, play: Any) -> None:
        """Host names are shown only where there are several."""
        self.groups = ", ".join(play.hosts)
        self.several = len(play.get_variable_manager().get_vars(play=play).get("ansible_play_hosts_all", [])) > 1

    def v2_playbook_on_task_start(self, task: Any, is_conditional: bool) -> None:
        """The clock of a step starts with its task."""
        self.mark = time.monotonic()
        with self.lock:
            self.running = _named(task)

    def v2_playbook_on_handler_task_start(self, task: Any) -> None:
        """The same for handlers."""
        self.mark = time.monotonic()

    def v2_runner_on_ok(self, result: Any) -> None:
        """A task is done; the items of a loop had their own lines, and the tasks of an included file have theirs."""
        if "results" in result._result or result._task.action.startswith("ansible.builtin.include_"):
            return
        if not self._reported(result):
            self._line(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_item_on_ok(self, result: Any) -> None:
        """An item of a loop is done."""
        if self._reported(result):
            return
        self._line(result, "changed" if result._result.get("changed") else "ok", self._get_item_label(result._result))
        self.mark = time.monotonic()

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        """A task failed: everything that it said."""
        if "results" in result._result and any(item.get("failed") for item in result._result["results"]):
            return
        self._failure(result, None)

    def v2_runner_item_on_failed(self, result: Any) -> None:
        """An item of a loop failed."""
        self._failure(result, self._get_item_label(result._result))

    def v2_runner_on_unreachable(self, result: Any) -> None:
        """A host cannot be reached: one line, with what to do."""
        said = [line.strip() for line in str(result._result.get("msg", "")).splitlines() if line.strip()]
        last = said[-1] if said else "it cannot be reached"
        cure = next(text for pattern, text in CURES if re.search(pattern, " ".join(said)))
        self._show(f"{result._host.get_name()}: {last}: {cure}", color="red")

    def v2_playbook_on_stats(self, stats: Any) -> None:
        """The warnings, and the sum for each host."""
        with self.lock:
            self.running = ""
        for text in self.warnings:
            self._show(text, color="purple")
        for host in sorted(stats.processed):
            summary = stats.summarize(host)
            bad = summary["failures"] + summary["unreachable"]
            counts = f"ok={summary['ok']} changed={summary['changed']} failed={bad} skipped={summary['skipped']}"
            text = f"{host}: {counts} ({time.monotonic() - self.started:.1f} s)"
            self._show(text, color="red" if bad else "green")

    def v2_playbook_on_no_hosts_matched(self) -> None:
        """An inventory without the groups that the playbook wants."""
        text = f"no host matches: does the inventory have the group {self.groups}?"
        self._show(text, color="red")

    def _reported(self, result: Any) -> bool:
        """Show what a debug task says, a warning at the end; whether it was one."""
        if result._task.action != "ansible.builtin.debug":
            return False
        said = result._result.get("msg", "")
        host = f"{result._host.get_name()}: " if self.several else ""
        text = host + ("\n".join(str(line) for line in said) if isinstance(said, list) else str(said)).rstrip()
        if result._task.get_name().split(" : ")[-1].startswith("Warn"):
            self.warnings.append(f"warning: {text}")
        else:
            self._show(text)
        return True

    def _line(self, result: Any, state: str, item: Any = None) -> None:
        name = _named(result._task)
        if state == "ok" and "Validating arguments against arg spec" in name:
            return
        name += f" ({item})" if item is not None else ""
        host = f"{result._host.get_name()}: " if self.several else ""
        seconds = time.monotonic() - self.mark
        self._show(f"{host}{name:<62.62} {state:<8} {seconds:6.1f} s", color=COLOURS.get(state))
        if self._display.verbosity and result._result.get("stdout"):
            self._show(result._result["stdout"])

    def _failure(self, result: Any, item: Any, state: str = "failed") -> None:
        self._line(result, state, item)
        said = [result._result.get(key) for key in ("stdout", "stderr", "module_stderr")]
        reason = str(result._result.get("msg", "")).strip()
        texts = [str(text).strip() for text in said if text]
        if reason and (not texts or reason != "non-zero return code"):
            texts.append(reason)
        if re.search(OLD_PYTHON, " ".join([*texts, reason])):
            texts.append(PYTHON_CURE)
        self._show("\n".join(texts), color="red")

    def _show(self, text: str, color: str | None = None) -> None:
        with self.lock:
            if sys.stdout.isatty():
                sys.stdout.write("\r\x1b[K")
            self._display.display(text, color=color)

    def _tick(self) -> None:
        """A line below that says what runs and for how long; a step that ends writes over it."""
        while True:
            time.sleep(TICK_S)
            with self.lock:
                if self.running:
                    sys.stdout.write(f"\r\x1b[K{self.running:<62.62} runs     {time.monotonic() - self.mark:6.0f} s")
                    sys.stdout.flush()


def _named(task: Any) -> str:
    """A task by its role and name."""
    return str(task.get_name()).strip().removeprefix("plumb_").replace(" : ", ": ", 1)
