"""What connects the ranks of a launch, from what each of them had open."""

from typing import Any

from witnesses import of_documents

from plumbline.launch.witness.model import sent_between, transports_between

between = of_documents(transports_between)
sent = of_documents(sent_between)


def rank(**seen: Any) -> dict[str, Any]:
    nothing = {"shm_bytes": 0, "sysv_bytes": 0, "file_bytes": 0, "file": "", "copies": 0, "connections": 0, "tcp": []}
    return {"transports": {**nothing, "devices": [], **seen}}


def test_a_connection_counts_if_two_ranks_have_its_ends():
    launcher = ["10.0.0.1:40000", "10.0.0.1:9999"]
    one, other = ["10.0.0.1:500", "10.0.0.2:600"], ["10.0.0.2:600", "10.0.0.1:500"]
    assert between([rank(tcp=[launcher, one]), rank(tcp=[other])]) == ["tcp"]
    assert between([rank(tcp=[launcher]), rank(tcp=[launcher])]) == []


def test_memory_copies_and_devices_are_named_once():
    first = rank(shm_bytes=4096, devices=["/dev/infiniband/uverbs0"])
    second = rank(shm_bytes=4096, copies=3, file_bytes=1, devices=["/dev/infiniband/uverbs0"])
    assert between([first, second]) == ["/dev/infiniband/uverbs0", "cma", "file", "shm"]


def test_one_rank_and_witnesses_of_earlier_versions_tell_nothing():
    assert between([rank(shm_bytes=4096)]) == []
    assert between([{}, {}]) == []


def test_bytes_between_ranks_are_added_up_by_the_first_rank_s_address():
    to_launcher = ["127.0.0.1:1", "127.0.0.1:9"]
    one, two, six = ["10.0.0.1:2", "10.0.0.2:3"], ["10.0.0.1:4", "10.0.0.2:5"], ["[fd00::1]:6", "[fd00::2]:7"]
    first = rank(tcp=[to_launcher, one, two, six], tcp_sent=[9999, 10, 20, 1])
    second = rank(tcp=[one[::-1], two[::-1], six[::-1]], tcp_sent=[5, -1, 2])
    assert sent([first, second]) == {"10.0.0.1": 35, "fd00::1": 3}
    assert sent([first]) == {}


def test_a_connection_of_one_process_to_itself_counts_in_it():
    ends = ["10.0.0.1:2", "10.0.0.1:3"]
    assert sent([rank(tcp=[ends, ends[::-1]], tcp_sent=[4, 5])]) == {"10.0.0.1": 18}


def test_witnesses_of_earlier_versions_tell_no_bytes():
    assert sent([rank(tcp=[["a:1", "b:2"]]), rank(tcp=[["b:2", "a:1"]])]) == {}
