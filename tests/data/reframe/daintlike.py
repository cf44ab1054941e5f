"""A ReFrame configuration as a centre has it: names, launcher and logs of its own, and nothing of Plumbline."""

import os

site_configuration = {
    "systems": [
        {
            "name": "daintlike",
            "descr": "a machine of another house",
            "hostnames": [".*"],
            "partitions": [
                {
                    "name": "login",
                    "scheduler": "local",
                    "launcher": "local",
                    "environs": ["builtin"],
                },
                {
                    "name": "normal",
                    "scheduler": "local",
                    "launcher": "mpirun",
                    "environs": ["builtin", "prgenv-gnu"],
                    "env_vars": [["OMP_NUM_THREADS", "1"], ["OMP_PROC_BIND", "spread"]],
                    "extras": {"nodes": "theirs", "topology": "theirs"},
                },
            ],
        }
    ],
    "environments": [{"name": "prgenv-gnu", "cc": "gcc", "cxx": "g++", "ftn": "gfortran", "features": ["gnu"]}],
    "logging": [
        {
            "handlers_perflog": [
                {
                    "type": "filelog",
                    "prefix": "%(check_system)s",
                    "format": "%(check_result)s|%(check_record_id)s|%(check_record_verified)s|%(check_record_verdict)s|"
                    "%(check_record_disturbed)s|%(check_record_plan)s|%(check_record_figures)s|%(check_perfvalues)s",
                    "format_perfvars": "%(check_perf_value)s|%(check_perf_unit)s|",
                },
                *([{"type": "httpjson", "url": os.environ["ELASTIC"]}] if "ELASTIC" in os.environ else []),
            ]
        }
    ],
}
