"""``python -m bayou.cli``: the same as ``bayou``."""

from bayou.cli import main

main()
