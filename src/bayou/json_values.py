"""Values that a model is made of, in JSON's types and back: numbers, specs, tuples, dictionaries, the names of code."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Mapping
from inspect import signature
from typing import Any, TypeAlias

import numpy as np

from bayou import encoders, functions, likelihoods, members, posteriors, rules, schedules, stiffness
from bayou.contracts import Code, Spec
from bayou.errors import InvalidSpec, ModelFileError

SPECS: dict[str, type[Spec]] = {
    name: getattr(home, name)
    for home in (encoders, functions, likelihoods, members, rules, posteriors, schedules, stiffness)
    for name in home.__all__
}
# Fields that specs got after files had been written without them: their default is what they were before.
LATER_FIELDS = {
    "Logistic": {"noise_scale"},
    "Member": {"past_variance", "past_mean", "tails", "jumps"},
    "Waves": {"inputs"},
}
NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
# Keys of what JSON has no word for. Code is not in the file: it has the name, and whoever loads it has the function.
TAGS = ({"spec", "fields"}, {"tuple"}, {"float"}, {"dict"}, {"array"}, {"code"})
Functions: TypeAlias = Mapping[str, Callable[..., Any]]
NONE: Functions = {}


def encode(value: Any) -> Any:
    """A value in JSON's types, such that `decode` gives an equal one of the same type."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Spec):
        name = type(value).__name__
        if SPECS.get(name) is not type(value):
            raise InvalidSpec(f"a model file can hold the specs that bayou exports; got {value!r}.")
        arguments = getattr(value, "arguments", None)  # specs with code in them tell what they were made with
        values = arguments() if arguments else vars(value)
        return {"spec": name, "fields": {field: encode(values[field]) for field in field_names(type(value))}}
    if isinstance(value, Code):
        return {"code": value.name}
    if isinstance(value, np.ndarray):
        return {"array": encode(value.astype(np.float64).tolist())}
    if isinstance(value, dict):
        if set(value) in TAGS or not all(isinstance(key, str) for key in value):
            return {"dict": [[encode(key), encode(item)] for key, item in value.items()]}
        return {key: encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = [encode(item) for item in value]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(value)}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"a model file can hold numbers, strings, specs, lists and dictionaries; got {value!r}.")


def decode(value: Any, given: Functions = NONE) -> Any:
    """The value that `encode` made this of; the functions that it names are those given."""
    if isinstance(value, list):
        return [decode(item, given) for item in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"spec", "fields"}:
        return _decode_spec(value["spec"], value["fields"], given)
    if value.keys() == {"code"}:
        return _code(value["code"], given)
    if value.keys() == {"array"}:
        return np.array(decode(value["array"]), dtype=np.float64)
    if value.keys() == {"tuple"}:
        return tuple(decode(item, given) for item in value["tuple"])
    if value.keys() == {"float"}:
        return NOT_FINITE[value["float"]]
    if value.keys() == {"dict"}:
        return {decode(key): decode(item, given) for key, item in value["dict"]}
    return {key: decode(item, given) for key, item in value.items()}


def _code(name: Any, given: Functions) -> Callable[..., Any]:
    """The user's own function of that name: no other is ever called."""
    if not isinstance(name, str) or name not in given:
        said = f"it knows a function by the name {reprlib.repr(name)}, but not its code"
        raise ModelFileError(f"{said}: load(path, functions={{{reprlib.repr(name)}: the function}}) must give it.")
    return given[name]


def _decode_spec(name: str, values: dict[str, Any], given: Functions) -> Spec:
    if name not in SPECS:
        raise ModelFileError(f"a spec must be one that this bayou has; got {reprlib.repr(name)}.")
    if (
        not set(field_names(SPECS[name])) - LATER_FIELDS.get(name, set())
        <= set(values)
        <= set(field_names(SPECS[name]))
    ):
        wanted = ", ".join(field_names(SPECS[name])) or "none"
        raise ModelFileError(f"the fields of {name} must be {wanted}; got {reprlib.repr(list(values))}.")
    return SPECS[name](**{field: decode(value, given) for field, value in values.items()})


def field_names(spec: type[Spec]) -> list[str]:
    """What a spec is made with."""
    return list(signature(spec).parameters)
