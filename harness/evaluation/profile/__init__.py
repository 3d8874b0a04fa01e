"""Profiles of candidates: hardware counters where they may be read, the launcher's clock otherwise."""
