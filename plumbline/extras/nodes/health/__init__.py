"""Whether a node is as fast as its kind: classes for ``plumb-check``, which judges without this package."""
