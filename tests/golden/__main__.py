"""`python -m tests.golden NAME…` writes what the samples of these adapters give anew; without a name, of all."""

import sys

from tests.contract.golden import write_all, write_some

for path in write_some(sys.argv[1:]) if sys.argv[1:] else write_all():
    print(path)
