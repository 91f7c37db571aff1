"""Seeded synthetic rows: situations that traffic has not covered, played against a fake world, written
like traffic."""
