"""The subcommands of ``plumb``, one in each module: its options, what it calls, what it prints. ``cli`` finds them."""

from plumbline.base import surroundings

surroundings.leave_python_path()  # before anything of another Python is imported
