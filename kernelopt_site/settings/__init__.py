"""Settings modules: ``base``, read from the environment; ``test`` for the test suite, which sets its own first."""
