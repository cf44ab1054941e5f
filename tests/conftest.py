"""What holds for all tests."""

import signal

# A script that starts the tests in its background makes them ignore SIGINT, and so all programs that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
