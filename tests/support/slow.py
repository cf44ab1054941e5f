"""The tests that ``make check`` leaves out."""

#: files, each of which takes seconds because it starts programs or draws much: `make check` leaves them out
FILES = (
    *(
        f"tests/attacks/test_{name}.py"
        for name in (
            "competitors",
            "foreign_variables",
            "hidden_work",
            "little_room",
            "replaced",
            "shared_folder",
            "stale_figures",
            "witness",
        )
    ),
    *("tests/golden/test_labs_printed.py", "tests/golden/test_plan_properties.py"),
    "tests/unit/base/test_scale.py",
    *(
        f"tests/unit/extras/{name}.py"
        for name in (
            "accept/test_accept_archive",
            "nodes/health/test_check_gpus",
            "nodes/health/test_check_runs",
            "publish/test_publish",
            "search/bisect/test_bisect_command",
        )
    ),
    *(
        f"tests/unit/launch/{name}.py"
        for name in ("test_turns", "test_waiting", "witness/test_witness_faults", "witness/test_witness_library")
    ),
    *(f"tests/unit/repository/test_{name}.py" for name in ("adding", "core_alone", "dependencies", "parallel")),
    "tests/unit/commands/test_scheduler_options.py",
    "tests/unit/gate/test_gate_commands.py",
    "tests/unit/measure/reframe/test_campaign_command.py",
    "tests/unit/proof/test_proof.py",
    "tests/unit/stacks/test_stacks_archive.py",
)
