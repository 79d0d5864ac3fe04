"""``bayou merge``: what models that learnt different rows know together, or one without a part of it."""

from __future__ import annotations

from bayou.cli.errors import Failed
from bayou.cli.places import require_folder
from bayou.cli.shown import warn
from bayou.distributed import merge, subtract
from bayou.modelfile import load, save


def run(models: list[str], output: str, takes_away: bool, quiet: bool) -> None:
    """Merge model files into one."""
    if len(models) < 2:
        raise Failed(f"there must be two models at least; got {len(models)}.")
    require_folder(output)
    loaded = [load(name) for name in models]
    whole = loaded[0]
    if takes_away:
        for part in loaded[1:]:
            whole = subtract(whole, part)
    else:
        whole = merge(*loaded)
    save(whole, output)
    if not quiet:
        warn(f"{whole!r} saved to {output}")
