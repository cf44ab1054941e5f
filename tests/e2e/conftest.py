"""Stacks whose programs misbehave on purpose, launched by the real launchers; pages in a browser."""

from chromium import browser, visit  # noqa: F401 - fixtures of the tests of pages
from gitlab_runner import modules, runner  # noqa: F401
from odd_stack import STREAM_OUTPUT, Bench, bench, results  # noqa: F401
