"""Somebody else's configuration: a launcher of their own name for it, and environments that know nothing of us."""

site_configuration = {
    "systems": [
        {
            "name": "theirs",
            "hostnames": [".*"],
            "partitions": [
                {"name": name, "scheduler": "local", "launcher": name, "environs": ["builtin"]}
                for name in ("mpirun", "local")
            ],
        }
    ],
    "environments": [{"name": "builtin", "cc": "gcc", "cxx": "", "ftn": ""}],
    "logging": [
        {
            "handlers": [{"type": "stream", "level": "info", "format": "%(message)s"}],
            "handlers_perflog": [
                {
                    "type": "filelog",
                    "prefix": "%(check_system)s",
                    "level": "info",
                    "format": "%(check_verified)s|%(check_proof_id)s|%(check_rank_map)s",
                }
            ],
        }
    ],
}
