"""`python -m etl` is the command `etl`."""

from etl.cli import main

if __name__ == "__main__":
    main()
