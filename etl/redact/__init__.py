"""The redaction stage: secrets are replaced by labels before anything is written.

The rules are Kingfisher's, kept by MongoDB (nearly 500, Betterleaks' and Veles' in them), because they are the only
kept set that reads whole columns at 400 MB/s in-process, survives a fork and has wheels for every common platform;
detect-secrets and its fork read 0.2 MB/s, betterleaks-py hangs after a fork and stops at the first NUL, credsweeper
brings 30 packages along. A few rules of our own (`etl/redact/rules.py`) add what conversation logs have and source
code has not.

How it goes: the distinct strings of a table (`search`, `texts`) are sifted in native code for the signs of every rule
at once (`sieve`, `expressions`), those of the kept set among them (`kept_signs`); suspicious ones are looked at as
plain text whatever escapes they stand in (`escapes`), the rules whose signs are there and the kept set offer spans
(`kept`, `rules`, `credentials`), overlapping offers are joined and replaced (`spans`), and the Arrow columns are put
together again around the replacements (`leaves`).
"""

from __future__ import annotations

from etl.redact.redactor import Redacted, Redactor

__all__ = ["Redacted", "Redactor"]
