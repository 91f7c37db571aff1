"""`python -m tests.golden` writes what every sample gives anew."""

from tests.contract.golden import write_all

for path in write_all():
    print(path)
