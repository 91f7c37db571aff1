"""One format, one file. Modules whose name starts with `_` are shared reading helpers."""
