"""One file per model: arrays as safetensors, everything else as JSON in the header. Loading runs no code.

    8 bytes    length of the header, little-endian
    header     {"__metadata__": {"bayou": manifest}, <array>: {"dtype": ..., "shape": ..., "data_offsets": ...}, ...}
    data       the arrays, little-endian, row by row, without gaps

The layout is that of safetensors, whose library reads these files. It is written and read here because the checksum
covers the header too, and because arrays go to and from the disk one by one, without a second copy of the model.

The manifest's checksum is the SHA-256 of the whole file, taken with zeros for its own digits: no bit can flip unseen.
A checksum is not a signature: whoever can write the file can make it true. Hence everything that the file claims is
checked, and compared with the size that it really has, before memory is given to it.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import reprlib
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from importlib import import_module
from io import BufferedReader, BytesIO
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bayou import strict_json
from bayou.contracts import Basis, Posterior, State
from bayou.errors import InvalidSpec, ModelFileError
from bayou.json_values import NONE, Functions, decode, encode, field_names

FORMAT_VERSION = 1
MAX_HEADER = 100_000_000  # the limit of the safetensors library
MAX_AXES = 32
MAX_ITEMS = 2**59  # numpy counts bytes in 63 bits, also for arrays that are empty along another axis

# Names, not classes: estimators lie above this module, and are imported when a file asks for one.
MODELS = {
    "Bank": "bayou.bank",
    "BayesianCCA": "bayou.estimators",
    "BinaryFactorAnalysis": "bayou.estimators",
    "ConformalClassifier": "bayou.estimators",
    "ConformalRegressor": "bayou.estimators",
    "FunctionLearner": "bayou.function_learner",
    "HarmonyMixture": "bayou.estimators",
    "IncrementalRiskClassifier": "bayou.estimators",
    "IncrementalRiskLearner": "bayou.risk_learner",
    "IncrementalRiskRegressor": "bayou.estimators",
    "Learner": "bayou.learner",
    "LocalFactorAnalysis": "bayou.estimators",
    "NetworkClassifier": "bayou.estimators",
    "NetworkRegressor": "bayou.estimators",
    "NormalisedPerceptron": "bayou.estimators",
    "OnlineClassifier": "bayou.estimators",
    "OnlineCounter": "bayou.estimators",
    "OnlineNetwork": "bayou.estimators",
    "OnlineRegressor": "bayou.estimators",
    "RivalPenalisedClustering": "bayou.estimators",
    "ShiftedPerceptron": "bayou.estimators",
    "SparseLearner": "bayou.sparse_learner",
    "SubspaceRegressor": "bayou.estimators",
    "TableModel": "bayou.estimators",
    "ThresholdedFunction": "bayou.estimators",
}
DTYPES = {"float64": "F64", "float32": "F32", "int64": "I64", "uint8": "U8", "bool": "BOOL"}
MANIFEST = ("checksum", "format_version", "bayou_version", "class", "config", "arrays")
NO_CHECKSUM = "0" * 64


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a model to one file. A file that was there stays as it was until the new one is complete.

    >>> import bayou, tempfile
    >>> learner = bayou.Learner(bayou.Probit(), bayou.FullGaussian(), bayou.MomentMatching(), n_features=2)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     bayou.save(learner, f"{folder}/learner.bayou")
    ...     bayou.load(f"{folder}/learner.bayou")
    Learner(Probit(noise_scale=1.0), FullGaussian(prior_variance=1.0, ...), MomentMatching(), n_features=2)
    """
    _write_whole(Path(path).resolve(), _chunks(_name_of(model), model.to_state()))


def to_bytes(model: Any) -> bytes:
    """What `save` would write.

    >>> import bayou
    >>> from bayou.modelfile import from_bytes, to_bytes
    >>> learner = bayou.Learner(bayou.Probit(), bayou.FullGaussian(), bayou.MomentMatching(), n_features=2)
    >>> from_bytes(to_bytes(learner)).n_features
    2
    """
    return b"".join(_chunks(_name_of(model), model.to_state()))


def _name_of(model: Any) -> str:
    name = type(model).__name__
    if name not in MODELS or type(model) is not _model_class(name):
        raise TypeError(f"`model` must be one of {', '.join(MODELS)}; got {type(model).__module__}.{name}.")
    return name


def load(path: str | os.PathLike[str], functions: Functions | None = None) -> Any:
    """The model that a file holds; it continues to the last bit.

    A function that the user wrote is code, which the file does not hold: ``functions`` gives it, by the name that the
    file has for it.

    A file that is damaged, foreign, hostile or too new raises `ModelFileError`, and is safe to try.
    """
    file = Path(path)
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise ModelFileError("it must be a regular file; got a folder or a device.")
        with file.open("rb") as stream:
            return _restore(*_read(stream, os.fstat(stream.fileno()).st_size), functions or NONE)
    except ModelFileError as error:
        raise ModelFileError(f"{file} cannot be loaded: {error}") from error


def from_bytes(data: bytes, functions: Functions | None = None) -> Any:
    """The model that these bytes of a file hold; as safe to try as `load`."""
    try:
        return _restore(*_read(BytesIO(data), len(data)), functions or NONE)
    except ModelFileError as error:
        raise ModelFileError(f"the bytes cannot be loaded: {error}") from error


class _Declared(NamedTuple):
    """What the manifest says of one array."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def _model_class(name: str) -> Any:
    return getattr(import_module(MODELS[name]), name)


# Writing


def _chunks(name: str, state: State) -> list[Any]:
    """The bytes of the file: the header, then each array, the widest types first so that all are aligned."""
    arrays = dict(sorted(state.arrays.items(), key=lambda item: (-item[1].itemsize, item[0])))
    manifest = {
        "checksum": NO_CHECKSUM,  # first, so that no other row of zeros can be taken for it
        "format_version": FORMAT_VERSION,
        "bayou_version": import_module("bayou").__version__,  # the package itself lies above its modules
        "class": name,
        "config": encode(state.config),
        "arrays": _described(arrays),
    }
    text = json.dumps(manifest, allow_nan=False, separators=(",", ":"))
    entries = {"__metadata__": {"bayou": text}, **_entries(_declared(manifest["arrays"]))}
    header = json.dumps(entries, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    if len(header) > MAX_HEADER:
        raise InvalidSpec(f"names and specs must fit into {MAX_HEADER} bytes of header; got {len(header)}.")
    start = len(header).to_bytes(8, "little") + header
    stored = [np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C") for array in arrays.values()]
    checksum = hashlib.sha256(start)
    for array in stored:
        checksum.update(array.data)
    return [start.replace(NO_CHECKSUM.encode(), checksum.hexdigest().encode(), 1), *stored]


def _described(arrays: dict[str, NDArray[Any]]) -> list[dict[str, Any]]:
    return [{"name": name, "dtype": a.dtype.name, "shape": list(a.shape)} for name, a in arrays.items()]


def _entries(arrays: Iterable[_Declared]) -> dict[str, Any]:
    """What the header of a safetensors file says of the arrays."""
    entries, start = {}, 0
    for name, dtype, shape in arrays:
        end = start + _Declared(name, dtype, shape).n_bytes
        entries[name] = {"dtype": DTYPES[dtype], "shape": list(shape), "data_offsets": [start, end]}
        start = end
    return entries


def _write_whole(path: Path, chunks: list[Any]) -> None:
    """Write beside the file, then take its place in one step: whatever happens, one whole file is there."""
    exists = path.exists()
    if exists and not path.is_file():
        raise ModelFileError(f"{path} must be a regular file, or none yet; it is a folder or a device.")
    temporary = path.parent / f".bayou-{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as stream:
            if exists:
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            for chunk in chunks:
                stream.write(chunk)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    with suppress(OSError):  # not every system can; a crash may then bring back the old file, which is whole too
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


# Reading


def _read(stream: BufferedReader | BytesIO, size: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The manifest and the arrays of a file that is as it was written."""
    start = stream.read(8)
    length = int.from_bytes(start, "little")
    if len(start) < 8 or length > min(MAX_HEADER, size - 8):
        raise ModelFileError(
            f"it is no model file, or cut off: its first 8 bytes must be the length of a header, at most {MAX_HEADER} "
            f"and no more than the {size} bytes of the file; got {length if start else 'nothing'}."
        )
    header = stream.read(length)
    entries = _parse(header, "header")
    manifest = _checked_manifest(entries)
    declared = _declared(manifest["arrays"])
    if entries != {"__metadata__": entries["__metadata__"], **_entries(declared)}:
        raise ModelFileError("its arrays must be those of its manifest, one after the other; got others.")
    promised, held = sum(array.n_bytes for array in declared), size - 8 - length
    if promised != held:
        raise ModelFileError(f"its arrays must take the {promised} bytes that its manifest tells; got {held}.")
    checksum = hashlib.sha256(start + header.replace(manifest["checksum"].encode(), NO_CHECKSUM.encode(), 1))
    arrays = {array.name: _read_array(stream, array) for array in declared}
    for array in arrays.values():
        checksum.update(array.data)
    if checksum.hexdigest() != manifest["checksum"]:
        raise ModelFileError(f"it is damaged: its checksum must be {checksum.hexdigest()}; got {manifest['checksum']}.")
    return manifest, arrays


def _read_array(stream: BufferedReader | BytesIO, declared: _Declared) -> NDArray[Any]:
    array = np.empty(declared.shape, np.dtype(declared.dtype).newbyteorder("<"))
    if stream.readinto(array.data) != declared.n_bytes:
        raise ModelFileError(f"`{declared.name}` must have {declared.n_bytes} bytes; the file ends before.")
    if declared.dtype == "bool" and np.any(array.view(np.uint8) > 1):
        raise ModelFileError(f"`{declared.name}` must be 0 or 1 everywhere; got {array.view(np.uint8).max()}.")
    return array


def _parse(text: bytes | str, name: str) -> dict[str, Any]:
    """The JSON object that this is, if it is one in the strict sense."""
    try:
        decoded = text.decode("utf-8") if isinstance(text, bytes) else text
        value = strict_json.loads(decoded)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"its {name} must be JSON in UTF-8; {type(error).__name__}: {error}") from error
    if not isinstance(value, dict):
        raise ModelFileError(f"its {name} must be a JSON object; got {reprlib.repr(value)}.")
    return value


def _checked_manifest(entries: dict[str, Any]) -> dict[str, Any]:
    """The manifest inside a header, if this version of bayou can read it."""
    metadata = entries.get("__metadata__")
    if not (isinstance(metadata, dict) and metadata.keys() == {"bayou"} and isinstance(metadata["bayou"], str)):
        raise ModelFileError(f"its metadata must have the one key 'bayou'; got {reprlib.repr(metadata)}.")
    manifest = _parse(metadata["bayou"], "manifest")
    version = manifest.get("format_version")
    if type(version) is int and version > FORMAT_VERSION:
        raise ModelFileError(
            f"it was written by a newer bayou; format version {version}, this one reads {FORMAT_VERSION}."
        )
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(f"its format version must be {FORMAT_VERSION}; got {reprlib.repr(version)}.")
    if set(manifest) != set(MANIFEST):
        raise ModelFileError(f"its manifest must have {', '.join(MANIFEST)}; got {reprlib.repr(list(manifest))}.")
    if not (isinstance(manifest["class"], str) and manifest["class"] in MODELS):
        raise ModelFileError(f"its class must be one of {', '.join(MODELS)}; got {reprlib.repr(manifest['class'])}.")
    if not (isinstance(manifest["checksum"], str) and re.fullmatch("[0-9a-f]{64}", manifest["checksum"])):
        raise ModelFileError(f"its checksum must be 64 hexadecimal digits; got {reprlib.repr(manifest['checksum'])}.")
    for key, kind in (("config", dict), ("arrays", list)):
        if not isinstance(manifest[key], kind):
            raise ModelFileError(f"its {key} must be a {kind.__name__}; got {reprlib.repr(manifest[key])}.")
    return manifest


def _declared(arrays: list[Any]) -> list[_Declared]:
    """The arrays that a manifest lists."""
    found = []
    for array in arrays:
        match array:
            case {"name": str(name), "dtype": str(dtype), "shape": list(shape), **rest} if (
                not rest
                and name != "__metadata__"
                and dtype in DTYPES
                and len(shape) <= MAX_AXES
                and all(type(length) is int and length >= 0 for length in shape)
                and math.prod(max(length, 1) for length in shape) <= MAX_ITEMS
            ):
                found.append(_Declared(name, dtype, tuple(shape)))
            case _:
                wanted = f"a name, a dtype among {', '.join(DTYPES)} and a shape of at most {MAX_ITEMS} items"
                raise ModelFileError(f"an array must have {wanted}; got {reprlib.repr(array)}.")
    if len({array.name for array in found}) < len(found):
        raise ModelFileError("its arrays must have names of their own; one came twice.")
    return found


def _restore(manifest: dict[str, Any], arrays: dict[str, NDArray[Any]], given: Functions) -> Any:
    """The model that the manifest and the arrays describe, if it takes up all that they say."""
    name = manifest["class"]
    try:
        config = decode(manifest["config"], given)
        _check_sizes(config, sum(array.nbytes for array in arrays.values()))
        native = {key: array.astype(array.dtype.name, copy=False) for key, array in arrays.items()}
        model = _model_class(name).from_state(State(config, native))
        again = model.to_state()
        made = _items({"config": encode(again.config), "arrays": _described(again.arrays)})
        lost = [key for key, value in _items(manifest).items() if not _kept({key: value}, made)]
    except (MemoryError, ModelFileError):
        raise
    except KeyError as error:
        raise ModelFileError(f"a {name} needs {reprlib.repr(error.args[0])}, which is missing.") from error
    except Exception as error:  # whatever a hostile value may break
        raise ModelFileError(f"it must describe a {name}; {type(error).__name__}: {str(error)[:400]}") from error
    if lost:
        raise ModelFileError(f"all of it must be part of a {name}; it has no use for {reprlib.repr(lost)}.")
    return model


def _items(manifest: dict[str, Any]) -> dict[str, Any]:
    return {**manifest["config"], **{array["name"]: array for array in manifest["arrays"]}}


def _kept(saved: Any, made: Any) -> bool:
    """Whether nothing was dropped or changed; a later bayou may know more."""
    if isinstance(saved, dict) and isinstance(made, dict):
        return all(key in made and _kept(value, made[key]) for key, value in saved.items())
    if isinstance(saved, list) and isinstance(made, list):
        return len(saved) == len(made) and all(map(_kept, saved, made))
    return bool(saved == made)


def _check_sizes(config: Any, n_bytes: int) -> int:
    """Refuse learners that are larger than all arrays of the file, before they are made; returns what is left."""
    parts = config.values() if isinstance(config, dict) else config if isinstance(config, (list, tuple)) else ()
    for part in parts:
        n_bytes = _check_sizes(part, n_bytes)
    if isinstance(config, dict) and isinstance(config.get("posterior"), Posterior) and "n_features" in config:
        n_latents = getattr(config.get("likelihood"), "n_latents", 1)
        n_bytes -= n_latents * _bytes_at_least(config["posterior"], config["n_features"], n_bytes // n_latents)
        if n_bytes < 0:
            claim = f"{reprlib.repr(config['n_features'])} features and {reprlib.repr(n_latents)} latents"
            raise ModelFileError(f"its arrays must be large enough for the {claim} that it tells; they are not.")
    return n_bytes


def _bytes_at_least(posterior: Posterior[Any], n_features: int, limit: int) -> int:
    """A lower bound for the size of a belief, found without making one that is much larger than the limit.

    Beliefs grow with the number of features, at most with its square: from one feature on, the number is doubled
    until the belief passes the limit or the next step would reach all features.
    """
    values = {name: getattr(posterior, name) for name in field_names(type(posterior))}
    if isinstance(values.get("basis"), Basis):  # which fixes the number of features; without it a belief is no larger
        values |= {"basis": None, "features": "orthonormal"}
    per_feature = {name: value for name, value in values.items() if isinstance(value, tuple)}
    size, n_bytes = 1, 0
    while size == 1 or (size < n_features and n_bytes <= limit):
        some = {name: tuple(islice(cycle(value), size)) for name, value in per_feature.items()}
        n_bytes = sum(array.nbytes for array in type(posterior)(**{**values, **some}).prior(size))
        size *= 2
    return n_bytes
