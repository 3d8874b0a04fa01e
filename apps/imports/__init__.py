"""Results measured elsewhere: shown on boards of their own, plainly marked, and no evidence for anything here."""
