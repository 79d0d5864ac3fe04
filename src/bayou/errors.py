"""What can go wrong, and how it is said.

    BayouError
    ├── InvalidSpec(ValueError)        a hyper-parameter outside its range, or parts that do not fit together
    ├── InvalidTarget(ValueError)      a target that the likelihood cannot produce
    ├── InvalidFeatures(ValueError)    features that are not finite numbers
    ├── ShapeMismatch(ValueError)      the wrong number of features, rows or weights
    ├── ImproperBelief(ValueError)     a belief that would not be a distribution
    ├── InvalidPrediction(ValueError)  probabilities or intervals that cannot be such
    ├── ModelFileError(ValueError)     a model file that is damaged, foreign or too new
    └── StreamError(ValueError)        a file of rows that is missing, damaged, empty or of other columns
    CalibrationWarning(UserWarning)    probabilities or intervals that do not keep what they promise
    SkippedRows(UserWarning)           rows that a stream left out, where no one asked for the list
    SlowSchedule(UserWarning)          steps that become small too soon for the error to fall as fast as it could

Every message names the thing, what was required and what came. An error leaves the model as it was.
"""


class BayouError(Exception):
    """The root of everything that bayou raises on purpose."""


class InvalidSpec(BayouError, ValueError):
    """A hyper-parameter outside its range, or parts that do not fit together."""


class InvalidTarget(BayouError, ValueError):
    """A target that the likelihood cannot produce."""


class InvalidFeatures(BayouError, ValueError):
    """Features that are not finite numbers."""


class ShapeMismatch(BayouError, ValueError):
    """The wrong number of features, rows or weights."""


class ImproperBelief(BayouError, ValueError):
    """A belief that would not be a distribution."""


class InvalidPrediction(BayouError, ValueError):
    """Probabilities or intervals that cannot be such."""


class ModelFileError(BayouError, ValueError):
    """A model file that is damaged, foreign or too new."""


class StreamError(BayouError, ValueError):
    """A file of rows that is missing, damaged, empty or of other columns."""


class CalibrationWarning(UserWarning):
    """Probabilities or intervals that do not keep what they promise."""


class SkippedRows(UserWarning):
    """Rows that a stream left out, where no one asked for the list."""


class SlowSchedule(UserWarning):
    """Steps that become small too soon for the error to fall as fast as it could."""
