"""The records of docs/acceptance.md are what their program makes."""

import acceptance


def test_the_stored_contract_and_records_are_those_that_are_made(tmp_path):
    acceptance.write(tmp_path)
    for name in ("contract.yaml", "results/cluster/night.jsonl"):
        assert (tmp_path / name).read_bytes() == (acceptance.FOLDER / name).read_bytes()
