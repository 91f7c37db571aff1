"""Exports: rows of a lake as files that trainers read, and nothing in them that should not be trained.

`target.py` is the contract; every module of `targets/` is one target. `run.py` reads top to bottom what an export does:
examine every row → decide which stay → write them. (The package is not called `export`, as the function is.)
"""
