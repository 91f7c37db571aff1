"""The dataset card of an export, so that `datasets.load_dataset(folder)` finds its files, splits and JSON columns."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import pyarrow as pa

from etl.card import features
from etl.exports.target import File, Target

_TEXT = """
# {title}

{about}.

{rows:,} records, written by `rollout-etl` (`etl export {name}`). `export.json` says from what, what was left out
and why, and how to repeat it.
"""
_JSON = """
Columns of JSON text are declared `json`: `datasets` 4.7 and newer gives them as objects, which chat templates need.
Older versions read the files alone: `load_dataset("parquet", data_files=...)`.
"""


def export_card(target: Target, schema: pa.Schema | None, files: Sequence[File]) -> str:
    """The text of README.md.

    `datasets` caches a folder under the text of its card alone: the digest of the files makes that another for other
    files, else a second export of one name would be served the rows of the first.
    """
    lines = ["---", "configs:", "- config_name: default", "  data_files:"]
    for split in dict.fromkeys(file.split for file in files):
        lines += [f"  - split: {split}", "    path:", *(f"    - {f.name}" for f in files if f.split == split)]
    digest = sha256("".join(file.sha256 for file in files).encode()).hexdigest()
    lines += ["dataset_info:", f"  description: files {digest[:32]}"]
    if schema is not None:
        lines += ["  features:", *features(schema, "", "  ", target.json_columns)]
    rows = sum(file.rows for file in files)
    text = _TEXT.format(title=f"Rollouts for {target.name}", about=target.about, name=target.name, rows=rows)
    return "\n".join([*lines, "---"]) + "\n" + text + (_JSON if target.json_columns and schema is not None else "")
