"""What can be said without looking at the features: a model that is no better has learnt nothing.

Each tells, for every row, what it says before the row's target is known.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bayou.contracts import Matrix, Vector


class Frequencies:
    """The classes as often as they came so far, each counted once more: its most probable class is the majority.

    >>> import numpy as np
    >>> Frequencies(2).learn(np.array([1, 1, 0])).round(2)
    array([[0.5 , 0.5 ],
           [0.33, 0.67],
           [0.25, 0.75]])
    """

    def __init__(self, n_classes: int) -> None:
        self._counts = np.ones(n_classes)

    def learn(self, codes: NDArray[np.intp]) -> Matrix:
        """The probabilities of the classes before each row."""
        came = np.arange(self._counts.size) == codes[:, None]
        after = self._counts + np.cumsum(came, axis=0)
        before = after - came
        self._counts = after[-1]
        probabilities: Matrix = before / before.sum(axis=1, keepdims=True)
        return probabilities


class NoChange:
    """The same class as last time: hard to beat where classes come in runs.

    >>> import numpy as np
    >>> NoChange().learn(np.array([1, 1, 0]))
    array([-1,  1,  1])
    """

    def __init__(self) -> None:
        self._last = -1

    def learn(self, codes: NDArray[np.intp]) -> NDArray[np.intp]:
        """The class before each row; -1 if there was none."""
        before = np.concatenate([[self._last], codes[:-1]])
        self._last = int(codes[-1])
        return before


class RunningMean:
    """The mean of the targets so far; before the first, ``start``. A start with ``weight`` counts as so many targets.

    >>> import numpy as np
    >>> RunningMean().learn(np.array([4.0, 6.0, 8.0]))
    array([0., 4., 5.])
    """

    def __init__(self, start: float = 0.0, weight: float = 0.0) -> None:
        self._mean, self._weight = start, weight

    def learn(self, targets: Vector) -> Vector:
        """The mean before each row."""
        weights = self._weight + np.arange(1, len(targets) + 1)
        after = (self._mean * self._weight + np.cumsum(targets)) / weights
        before = np.concatenate([[self._mean], after[:-1]])
        self._mean, self._weight = float(after[-1]), float(weights[-1])
        return before
