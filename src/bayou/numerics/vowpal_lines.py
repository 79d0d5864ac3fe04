"""Lines of Vowpal Wabbit's text: ``[label] [importance] ['tag]|namespace[:scale] feature[:value] ... |namespace ...``.

What it means: a feature without value has 1, the scale of a namespace multiplies its values, a feature that comes again
adds up, and a value that is no number is text.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from bayou.numerics.broken_rows import shown

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)
BLANKS = "\t\n\v\f\r\x1c\x1d\x1e\x1f "  # those of ASCII: others are letters of names
WORD = re.compile(f"[^{BLANKS}]+")
COSTS = re.compile(r"[^\s|']*[:,][^\s|]*")


class BrokenLine(ValueError):
    """A line that is not such text, or has what is not supported."""


class Example(NamedTuple):
    """One line. The label is nan where there is none, the tag None."""

    label: float
    weight: float
    tag: str | None
    features: dict[str, float | str]


def read_line(line: str) -> Example:
    """The example of a line that is not empty; raises `BrokenLine` where there is none."""
    head, bar, rest = line.partition("|")
    if not bar:
        raise BrokenLine(f"must have a bar before its features; got {shown(line)}")
    label, weight, tag = _head(head)
    features: dict[str, float | str] = {}
    for namespace in rest.split("|"):
        _add_namespace(namespace, features)
    return Example(label, weight, tag, features)


def _head(head: str) -> tuple[float, float, str | None]:
    """Label, importance and tag. What touches the bar is a tag, with or without its quote."""
    words, tag = _words(head), None
    if words and words[-1].startswith("'"):
        tag = words.pop()[1:]
    elif words and head[-1] not in BLANKS:
        tag = words.pop()
    for word in words:
        if not NUMBER.fullmatch(word):
            if word == "shared" or COSTS.fullmatch(word):
                raise BrokenLine(
                    f"must have one number as label: several and their costs are not supported; got {word!r}"
                )
            raise BrokenLine(f"must have a number as label and importance; got {shown(word)}")
    if len(words) > 2:
        raise BrokenLine(f"must have a label and an importance at most: a base is not supported; got {shown(head)}")
    label = float(words[0]) if words else math.nan
    weight = float(words[1]) if len(words) > 1 else 1.0
    if math.isinf(label) or not 0.0 <= weight < math.inf:
        raise BrokenLine(f"must have a finite label and an importance of 0 or more; got {shown(head)}")
    return label, weight, tag


def _add_namespace(text: str, features: dict[str, float | str]) -> None:
    words = _words(text)
    name, scale = "", 1.0
    if words and text[0] not in BLANKS:
        name, colon, told = words.pop(0).partition(":")
        if colon:
            scale = _number(told, f"must have a number as scale of the namespace {name!r}")
    prefix = f"{name}^" if name else ""
    for word in words:
        feature, colon, told = word.partition(":")
        key, value = prefix + feature, scale
        if not feature:
            raise BrokenLine(f"must have a name for each feature: those without are not supported; got {shown(word)}")
        if colon:
            if not NUMBER.fullmatch(told):
                _add_text(key, told, scale, features)
                continue
            value *= float(told)
        if key in features:
            before = features[key]
            if isinstance(before, str):
                raise BrokenLine(f"must have a number or text in {key!r}, not both; got {shown(word)}")
            value += before
        if not -math.inf < value < math.inf:
            raise BrokenLine(f"must have a finite value of {key!r}; got {shown(told)}")
        features[key] = value


def _add_text(key: str, text: str, scale: float, features: dict[str, float | str]) -> None:
    if not text or ":" in text:
        raise BrokenLine(f"must have features as name or name:value; got {shown(text)} as value of {key!r}")
    if NOT_FINITE.fullmatch(text):
        raise BrokenLine(f"must have a finite value of {key!r}; got {shown(text)}")
    if scale != 1.0:
        raise BrokenLine(f"must have numbers in a namespace with a scale: text has none; got {shown(text)} in {key!r}")
    if key in features:
        raise BrokenLine(f"must have text in {key!r} once; got {features[key]!r} and {shown(text)}")
    features[key] = text


def _words(text: str) -> list[str]:
    return text.split() if text.isascii() else WORD.findall(text)


def _number(text: str, requirement: str) -> float:
    value = float(text) if NUMBER.fullmatch(text) else math.nan
    if not math.isfinite(value):
        raise BrokenLine(f"{requirement}; got {shown(text)}")
    return value
