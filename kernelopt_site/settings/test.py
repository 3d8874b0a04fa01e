"""Settings of the test suite: a file database of this process alone, quick password hashes, a private ``var``."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

if "KERNELOPT_VAR" not in os.environ:
    os.environ["KERNELOPT_VAR"] = tempfile.mkdtemp(prefix="kernelopt-test-")
    atexit.register(shutil.rmtree, os.environ["KERNELOPT_VAR"], ignore_errors=True)

from kernelopt_site.settings.base import *  # noqa: F403
from kernelopt_site.settings.base import DATABASES, VAR_DIR

# Live-server tests and second processes need a file, and two suites in one checkout must not share it.
if DATABASES["default"]["ENGINE"].endswith("sqlite3"):
    DATABASES["default"]["TEST"] = {"NAME": str(Path(VAR_DIR) / f"test-{os.getpid()}.sqlite3")}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
ALLOWED_HOSTS = ["localhost", "127.0.0.1", "testserver"]
