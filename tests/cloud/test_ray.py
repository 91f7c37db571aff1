"""Reading on a real Ray cluster of several nodes: the same rows as on one machine, also when a node is killed."""

import json
import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

import etl as product
from etl.errors import LakeError, UsageError
from etl.lake import Lake
from etl.settings import Settings
from tests.lakes import NOW, REPO, said

pytestmark = [pytest.mark.slow, pytest.mark.skipif(find_spec("ray") is None, reason="needs ray")]

# In a process of its own, with an end to its time: Ray starts many, and leaves threads behind in its driver.
CLUSTER = """
import pathlib, sys, threading, time
import ray
from ray.cluster_utils import Cluster
import etl
readers, what, lake = int(sys.argv[1]), sys.argv[2], sys.argv[3]
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2 - readers, "include_dashboard": False})
node, *_ = [cluster.add_node(num_cpus=1) for _ in range(readers)]
cluster.wait_for_nodes()
gone = []
if what == "kill":
    def kill():
        at_work = set()
        while len(at_work) < readers:  # staged files name the task that writes them
            at_work = {file.name.split("-")[1] for file in pathlib.Path(lake).glob(".staging/*/rollouts-*")}
            time.sleep(0.01)
        gone.append(node)
        cluster.remove_node(node, allow_graceful=False)
        cluster.add_node(num_cpus=1)
    threading.Thread(target=kill, daemon=True).start()
report = etl.ingest(sys.argv[4:], lake=lake, engine="ray", ray_address=cluster.address)
assert len(gone) == (what == "kill"), "the run ended before the node was killed"
print(report.rows.added)
cluster.shutdown()
"""


def _on_cluster(lake, what, *paths, readers=1):
    """So many nodes of one core read, beside the head where it is one alone; `kill` takes one away at its work."""
    command = [sys.executable, "-c", CLUSTER, str(readers), what, str(lake), *map(str, paths)]
    environment = {**os.environ, "PYTHONPATH": str(REPO), "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
    environment["RAY_USAGE_STATS_ENABLED"] = "0"
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()[-1]


@pytest.fixture
def logs(tmp_path):
    """Sample logs of formats of every kind, and enough chats that reading takes a while."""
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(6):
        chats = [
            {"id": f"{number}-{n}", "messages": [{"role": "user", "content": f"hi {number} {n} " * 40}]}
            for n in range(3_000)
        ]
        (folder / f"{number}.jsonl").write_text("".join(json.dumps(chat) + "\n" for chat in chats))
    return [folder, *(REPO / "sample_logs" / name for name in ("claude_code", "otlp", "tau_bench"))]


@pytest.mark.parametrize("what", ["run", "kill"])
def test_a_cluster_gives_the_rows_of_one_machine(logs, tmp_path, what):
    alone = product.ingest(logs, lake=tmp_path / "alone", now=NOW)
    added = int(_on_cluster(tmp_path / "lake", what, *logs))
    assert added == alone.rows.added
    assert said(tmp_path / "lake") == said(tmp_path / "alone")
    assert Lake.open(tmp_path / "lake").verify() == []


def test_a_node_killed_within_one_large_file_changes_nothing(tmp_path):
    """The file is read in parts, by tasks on two nodes; those of the one that goes are read again."""
    file = tmp_path / "chats.jsonl"
    with file.open("w") as lines:
        for number in range(4_000):
            words = " ".join(f"{number * step % 9_973}" for step in range(1, 2_000))
            lines.write(json.dumps({"id": str(number), "messages": [{"role": "user", "content": words}]}) + "\n")
    assert file.stat().st_size > 2 * Settings("", "", 0).part_bytes
    alone = product.ingest([file], lake=tmp_path / "alone", now=NOW)
    added = int(_on_cluster(tmp_path / "lake", "kill", file, readers=2))
    assert added == alone.rows.added == 4_000
    assert said(tmp_path / "lake") == said(tmp_path / "alone")
    assert Lake.open(tmp_path / "lake").verify() == []


def test_a_cluster_that_is_not_there_is_one_line(logs, tmp_path):
    with pytest.raises(LakeError, match=r"no Ray cluster at 127\.0\.0\.1:9"):
        product.ingest(logs, lake=tmp_path / "lake", now=NOW, engine="ray", ray_address="127.0.0.1:9")
    with pytest.raises(UsageError, match="no engine is called"):
        product.ingest(logs, lake=tmp_path / "lake", now=NOW, engine="spark")
