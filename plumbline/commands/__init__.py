"""The subcommands of ``plumb``, one in each module: its options, what it calls, what it prints. ``cli`` finds them."""
