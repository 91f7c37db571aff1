"""One target, one file; helpers that several share begin with an underscore."""
