#!/usr/bin/env python
"""Django's command line entry."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """Run a management command with the settings of this site; one that cannot be used is said in a sentence."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "kernelopt_site.settings.base")
    from django.core.management import execute_from_command_line

    from kernelopt_site.env import wrong_setting

    why = wrong_setting()
    if why is not None:
        sys.exit(f"{why} Nothing was begun; docs/settings.md lists the settings.")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
