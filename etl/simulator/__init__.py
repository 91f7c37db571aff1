"""Seeded synthetic rows: situations that traffic has not covered, played against a fake world and written like traffic."""
