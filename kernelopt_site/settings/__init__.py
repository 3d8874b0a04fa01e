"""Settings of the site: ``base`` read from the environment; ``test`` for the test suite."""

from kernelopt_site.settings.base import *  # noqa: F403
