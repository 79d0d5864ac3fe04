"""What a bank has found, in some lines for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bayou.bank_changes import ChangePoint

LEAST = 0.005  # what is less probable is not told
MOST_CHANGES = 3


class Found(Protocol):
    """What is asked of a bank."""

    members: tuple[Any, ...]
    n_examples: int

    def settings(self, name: str) -> dict[Any, float]: ...

    @property
    def drift_probability(self) -> float: ...

    @property
    def nbytes(self) -> int: ...

    @property
    def awake(self) -> Any: ...

    def change_points(self) -> list[ChangePoint]: ...


def told(bank: Found) -> str:
    """Drift, label noise, what bends, changes, and what it costs."""
    lines = [f"drifts with probability {bank.drift_probability:.2f}; per row, of the prior variance: " + _drifts(bank)]
    if any(hasattr(member.likelihood, "flip_rate") for member in bank.members):
        rates = {rate or 0.0: p for rate, p in bank.settings("flip_rate").items()}
        lines.append(f"wrong labels: {sum(rate * p for rate, p in rates.items()):.3f} ({_listed(rates)})")
    if len(sizes := _sizes(bank)) > 1:
        lines.append(f"prior variance of weights: {_listed(sizes)}")
    bends = sum(p for waves, p in _by(bank, "waves").items() if waves is not None)
    lines.append(f"bends with probability {bends:.2f}")
    changes = bank.change_points()
    if changes:
        latest = ", ".join(f"row {row:,} ({probability:.2f})" for row, probability in changes[-MOST_CHANGES:])
        lines.append(f"changes of everything: {len(changes)}; the latest at {latest}")
    lines.append(f"{int(bank.awake.sum())} of {len(bank.members)} members awake; {bank.nbytes:,} bytes")
    return "\n".join(lines)


def _by(bank: Found, name: str) -> dict[Any, float]:
    return bank.settings(name) if any(getattr(member, name) is not None for member in bank.members) else {None: 1.0}


def _sizes(bank: Found) -> dict[float, float]:
    """How probable each prior variance is, of members that have one for all weights."""
    return {size: p for size, p in bank.settings("prior_variance").items() if isinstance(size, (int, float))}


def _drifts(bank: Found) -> str:
    return _listed(bank.settings("drift"))


def _listed(found: Mapping[float, float]) -> str:
    return ", ".join(f"{value:g}: {p:.2f}" for value, p in sorted(found.items()) if p >= LEAST)
