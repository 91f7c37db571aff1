"""`etl report`, `etl label` and `etl serve` from the command line."""

import json
import shutil

import pytest

from etl.cli import run
from etl.query import run_sql


@pytest.fixture
def lake(sample_lake, tmp_path, monkeypatch):
    """A lake of our own, which ETL_LAKE names."""
    shutil.copytree(sample_lake, tmp_path / "lake")
    monkeypatch.setenv("ETL_LAKE", str(tmp_path / "lake"))
    return tmp_path / "lake"


def told(capsys):
    """What `--json` printed."""
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_report_writes_one_file(lake, tmp_path, capsys):
    pytest.importorskip("vl_convert", reason='needs: pip install "rollout-etl[report]"')
    out = tmp_path / "report.html"
    assert run(["report", "--out", str(out), "--samples", "1", "--json"]) == 0
    assert told(capsys) == {"out": str(out), "bytes": out.stat().st_size}
    assert out.read_text().rstrip().endswith("</html>")
    assert run(["report", "--out", str(tmp_path / "no" / "folder.html")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir() if "report" in path.name] == ["report.html"]


def test_a_row_is_labelled_by_the_beginning_of_its_id(lake, capsys):
    (rollout_id,) = next(run_sql(lake, "SELECT min(rollout_id) FROM rollouts").rows)
    assert (
        run(["label", rollout_id[:14], "good", "--name", "quality", "--value", "1", "--reason", "kind", "--json"]) == 0
    )
    assert told(capsys) == {"rollout_id": rollout_id, "name": "quality", "changed": True}
    labels = (
        f"SELECT j FROM rollouts, unnest(judgments) AS of_row(j) WHERE rollout_id = '{rollout_id}' AND j.kind = 'human'"
    )
    ((label,),) = run_sql(lake, labels).rows
    assert (label["name"], label["label"], label["value"], label["reason"]) == ("quality", "good", 1.0, "kind")
    assert run(["label", rollout_id, "--remove", "--name", "quality"]) == 0
    assert list(run_sql(lake, labels).rows) == []
    assert run(["label", rollout_id, "--remove", "--name", "quality"]) == 0
    assert "was so already" in capsys.readouterr().err


def test_a_secret_in_a_label_is_replaced(lake):
    (rollout_id,) = next(run_sql(lake, "SELECT min(rollout_id) FROM rollouts").rows)
    secret = "postgres://app:hunter2fake@db.example/orders"
    assert run(["label", rollout_id, "bad", "--reason", f"it printed {secret}"]) == 0
    said = f"SELECT judgments[-1].reason FROM rollouts WHERE rollout_id = '{rollout_id}'"
    ((reason,),) = run_sql(lake, said).rows
    assert "hunter2fake" not in reason


@pytest.mark.parametrize(
    "arguments",
    [
        ["label", "nobody", "good"],
        ["label", "r_"],
        ["label", "r_", "good", "--remove"],
        ["report"],
        ["serve", "--port", "70000"],
    ],
    ids=" ".join,
)
def test_what_cannot_be_meant_is_one_line(lake, capsys, arguments):
    assert run(arguments) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_port_that_is_taken_is_said(lake, capsys):
    import socket

    pytest.importorskip("uvicorn", reason='needs: pip install "rollout-etl[serve]"')
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert run(["serve", "--port", str(taken.getsockname()[1])]) == 1
    assert "--port" in capsys.readouterr().err
