"""`etl serve`: a lake in the browser, for one person on one machine.

It listens on the loopback address only, answers nobody without the token of its start, runs no SQL that could do more
than read the live files of the lake, and changes nothing but labels (`etl/lake/labels.py`).
"""
