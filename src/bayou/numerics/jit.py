"""numba's one door: compiled kernels, kept on disk, called through addresses.

Kernels are cached in a folder named by a hash of the sources that they can be made of, because numba itself does not
notice an edited callee in another file. Components meet as addresses (integers) rather than as arguments or closures,
because only those let a later process find what an earlier one has compiled. With NUMBA_DISABLE_JIT=1 kernels are
plain functions and their own addresses.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from bayou.contracts import Kernel

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = not numba.config.DISABLE_JIT
CACHES_KEPT = 4
DEFINES_KERNELS = re.compile(rb"^from bayou\.numerics(\.jit import .*kernel| import jit)", re.MULTILINE)

# NaN and infinity keep their meaning: kernels recognise a bad row by them.
REORDERING = {"reassoc", "contract", "arcp", "nsz"}

# Said aloud, because a kernel would take them over from whichever caller happens to compile it first.
_OPTIONS = {"nogil": True, "error_model": "numpy", "fastmath": False, "forceinline": False, "_nrt": True}


def source_hash(package: Path) -> str:
    """Hash of every file that a kernel can be made of: all of each part in which some file defines kernels."""
    parts: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        parts.setdefault(path.relative_to(package).parts[0], []).append(path)
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    for part, paths in parts.items():
        sources = [path.read_bytes() for path in paths]
        defines_kernels = any(DEFINES_KERNELS.search(source) for source in sources)
        if defines_kernels or part in ("contracts", "numerics"):
            for path, source in zip(paths, sources, strict=True):
                digest.update(f"{path.relative_to(package)} {len(source)} ".encode())
                digest.update(source)
    return digest.hexdigest()[:16]


def _cache_directory() -> str | None:
    """The folder for this version of the sources; folders of older versions go, but for the newest few.

    None where nothing can be written: then each process compiles anew.
    """
    chosen = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    root = Path(chosen) / "bayou"
    directory = root / source_hash(Path(__file__).parent.parent)
    try:
        if not directory.exists():
            directory.mkdir(parents=True, exist_ok=True)
            others = sorted((p for p in root.iterdir() if p != directory), key=_age)
            for stale in others[: 1 - CACHES_KEPT]:
                shutil.rmtree(stale, ignore_errors=True)
        with tempfile.TemporaryFile(dir=directory):
            return str(directory)
    except OSError:
        return None


def _age(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process has just removed it
        return 0.0


_CACHE = _cache_directory() if COMPILED else None


def _compile(function: F, **options: Any) -> F:
    """Compile at first use, cached in our own folder, whatever the process uses for its other kernels."""
    if not COMPILED:
        return function
    elsewhere = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = _CACHE or elsewhere
    try:
        compiled: F = numba.njit(cache=_CACHE is not None, **{**_OPTIONS, **options})(function)
    finally:
        numba.config.CACHE_DIR = elsewhere
    return compiled


def kernel(function: F) -> F:
    """Compile a function whose order of operations matters: special functions, sites, recursions."""
    return _compile(function)


def vectorized_kernel(function: F) -> F:
    """Compile a function whose sums may be reordered, so that its loops use the whole width of the machine.

    Inlined into its callers, always: otherwise the process that compiles it and those that find it on disk may call
    different copies, reordered differently, and disagree in the last bit.
    """
    return _compile(function, fastmath=REORDERING, forceinline=True)


def borrowing_kernel(function: F) -> F:
    """A vectorized kernel that allocates nothing and keeps no array: without counting references to those it is given.

    Else a kernel that hands arrays to others counts them at every call, which is more than a short row costs.
    """
    return _compile(function, fastmath=REORDERING, forceinline=True, _nrt=False)


def rebound(template: F, module: str, **callees: Kernel) -> F:
    """A copy of a plain function that calls these kernels where it names them; to be compiled for that module.

    It is how one text of a loop serves many components: as an argument or in a closure the callee would keep the
    compiled loop out of the disk cache.
    """
    copy = FunctionType(template.__code__, {**template.__globals__, **callees}, template.__name__)
    copy.__module__ = module
    copy.__qualname__ = f"{module}.{template.__name__}"
    return copy  # type: ignore[return-value]  # the same signature as the template


def entry_point(function: Kernel, *arguments: Any, template: Kernel | None = None, nogil: bool = True) -> Kernel:
    """The kernel compiled for arguments of just these types, without the look at each argument at every call.

    It trusts its caller: arguments of other types are not noticed, and arrays are borrowed without being counted. A
    template is a plain function that names the kernel ``callee``; without one the kernel is called as it is.
    """
    plain = _ENTRIES[len(arguments)] if template is None else template
    entry = _borrowing(function, plain, nogil)
    if not COMPILED:
        return entry
    kinds = tuple(numba.typeof(argument) for argument in arguments)
    compiled: Kernel = entry.compile(kinds)  # type: ignore[attr-defined]  # a numba dispatcher
    return compiled


def callee(*_: Any) -> Any:
    """What an entry calls is given by `_borrowing`."""
    raise NameError("an entry is compiled for a kernel by `entry_point`, not called by itself")


_ENTRIES: dict[int, Kernel] = {
    4: lambda a, b, c, d: callee(a, b, c, d),  # noqa: PLW0108  # names callee
    6: lambda a, b, c, d, e, f: callee(a, b, c, d, e, f),  # noqa: PLW0108  # names callee
    7: lambda a, b, c, d, e, f, g: callee(a, b, c, d, e, f, g),  # noqa: PLW0108  # names callee
    8: lambda a, b, c, d, e, f, g, h: callee(a, b, c, d, e, f, g, h),  # noqa: PLW0108  # names callee
    9: lambda a, b, c, d, e, f, g, h, i: callee(a, b, c, d, e, f, g, h, i),  # noqa: PLW0108  # names callee
    10: lambda a, b, c, d, e, f, g, h, i, j: callee(a, b, c, d, e, f, g, h, i, j),  # noqa: PLW0108  # names callee
    11: lambda a, b, c, d, e, f, g, h, i, j, k: callee(a, b, c, d, e, f, g, h, i, j, k),  # noqa: PLW0108  # names callee
    12: lambda a, b, c, d, e, f, g, h, i, j, k, m: callee(a, b, c, d, e, f, g, h, i, j, k, m),  # noqa: PLW0108  # names callee
    13: lambda a, b, c, d, e, f, g, h, i, j, k, m, n: callee(a, b, c, d, e, f, g, h, i, j, k, m, n),  # noqa: PLW0108  # names callee
}


@cache
def _borrowing(function: Kernel, template: Kernel, nogil: bool) -> Kernel:
    """A kernel that only calls this one, without counting references: that is most of the price of a short call."""
    copy = rebound(template, function.__module__, callee=function)
    copy.__qualname__ = f"{function.__qualname__}.{template.__name__}"
    return _compile(copy, _nrt=False, nogil=nogil)


_NAMED = {
    "float": types.float64,
    "vector": types.Array(types.float64, 1, "C"),
    "numbers": types.CPointer(types.float64),
    "addresses": types.CPointer(types.intp),
}


class Pointer:
    """A call through an address: what kind of kernel, in which slot of the addresses, with which signature.

    In a kernel, ``call = pointer.caller`` must be a module-level name: ``call(addresses, *arguments)``. Where the
    signature says "numbers" or "addresses" an array is passed as the place where it begins, in one register: the kernel
    that is called reads its values by their index, and cannot ask for its size.
    """

    def __init__(self, slot: int, arguments: Sequence[str], returns: int) -> None:
        self.slot = slot
        result = types.float64 if returns == 1 else types.UniTuple(types.float64, returns)
        self.signature = result(*(_NAMED[name] for name in arguments))
        self.caller: Kernel = self._compiled_caller() if COMPILED else self._plain_caller

    def address(self, function: Callable[..., Any]) -> Any:
        """Where the compiled function lives; the function itself when nothing is compiled."""
        if not COMPILED:
            return function
        dispatcher: Any = function
        dispatcher.compile(self.signature.args)  # by arguments alone, as a caller would: one entry in the cache
        result = dispatcher.overloads[self.signature.args]
        return result.library.get_pointer_to_function(result.fndesc.llvm_func_name)

    def _plain_caller(self, addresses: Sequence[Callable[..., Any]], *arguments: Any) -> Any:
        return addresses[self.slot](*arguments)

    def _compiled_caller(self) -> Callable[..., Any]:
        slot, signature = self.slot, self.signature
        accepted = (_NAMED["addresses"], *signature.args)

        def codegen(context: Any, builder: Any, given: Any, arguments: Any) -> Any:
            passed = [
                _begin(context, builder, kind, value) if isinstance(wanted, types.CPointer) else value
                for kind, wanted, value in zip(given.args, accepted, arguments, strict=True)
            ]
            address = builder.load(builder.gep(passed[0], [ir.Constant(ir.IntType(64), slot)]))
            function_type = context.call_conv.get_function_type(signature.return_type, signature.args)
            result = cgutils.alloca_once(builder, context.get_return_type(signature.return_type))
            error = cgutils.alloca_once(builder, ir.PointerType())  # never read: kernels do not raise
            packed = context.get_arg_packer(signature.args).as_arguments(builder, passed[1:])
            builder.call(builder.inttoptr(address, function_type.as_pointer()), [result, error, *packed])
            return context.get_returned_value(builder, signature.return_type, builder.load(result))

        def typed(given: Sequence[Any]) -> Any:
            pairs = zip(given, accepted, strict=True)
            kinds = [kind if isinstance(wanted, types.CPointer) else wanted for kind, wanted in pairs]
            return signature.return_type(*kinds), codegen

        return _intrinsic_of_arity(len(signature.args), typed)


def _begin(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """Where an array begins."""
    return value if isinstance(kind, types.CPointer) else context.make_array(kind)(context, builder, value).data


def _intrinsic_of_arity(arity: int, typed: Callable[[Sequence[Any]], Any]) -> Kernel:
    """numba reads an intrinsic's arity from its Python signature, so there is one shape per number of arguments."""
    shapes: dict[int, Any] = {
        3: lambda typing, table, a, b, c: typed((table, a, b, c)),
        4: lambda typing, table, a, b, c, d: typed((table, a, b, c, d)),
        5: lambda typing, table, a, b, c, d, e: typed((table, a, b, c, d, e)),
        6: lambda typing, table, a, b, c, d, e, f: typed((table, a, b, c, d, e, f)),
        7: lambda typing, table, a, b, c, d, e, f, g: typed((table, a, b, c, d, e, f, g)),
    }
    caller: Kernel = intrinsic(shapes[arity])
    return caller


def addresses(functions: Sequence[tuple[Pointer, Callable[..., Any] | None]]) -> Any:
    """The table that kernels look others up in, by slot; what is not there is not to be called."""
    if not COMPILED:
        table: list[Any] = [None] * (1 + max(pointer.slot for pointer, _ in functions))
    else:
        table = np.zeros(1 + max(pointer.slot for pointer, _ in functions), dtype=np.intp)  # type: ignore[assignment]  # or a list
    for pointer, function in functions:
        if function is not None:
            table[pointer.slot] = pointer.address(function)
    return table if COMPILED else tuple(table)


def intrinsic_like(plain: Kernel, typed: Callable[..., Any]) -> Any:
    """An intrinsic that takes as many arguments as a plain function, which numba reads from its Python signature."""

    def shape(context: Any, *given: Any) -> Any:
        return typed(context, *given)

    names = ["context", *inspect.signature(plain).parameters]
    parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
    shape.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    return intrinsic(shape)


class Deferred:
    """A large kernel that few need: compiled when `prepare` asks for it, and not with the kernels that call it.

    ``examples(dtype)`` are arguments of the types that it is compiled for, for numbers of single or double precision.
    In a kernel, ``call = deferred.caller`` must be a module-level name. It returns what the kernel does, which must be
    a whole number, or -1 where there is none for these arguments.
    """

    def __init__(self, function: Kernel, examples: Callable[[str], tuple[Any, ...]]) -> None:
        self.function, self.examples = function, examples
        self.name = f"{function.__module__}.{function.__name__}"
        self.places = {dtype: np.zeros(1, dtype=np.intp) for dtype in ("float32", "float64")}
        for dtype, place in self.places.items():
            llvm.add_symbol(f"{self.name}.{dtype}", place.ctypes.data)
        self.caller: Kernel = intrinsic_like(function, self._typed) if COMPILED else function

    def prepare(self, dtype: str) -> None:
        """Compile it for beliefs of this type, unless an earlier process has."""
        if COMPILED and not self.places[dtype][0]:
            dispatcher: Any = self.function
            dispatcher.compile(self._kinds(dtype))
            result = dispatcher.overloads[self._kinds(dtype)]
            self.places[dtype][0] = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)

    def _kinds(self, dtype: str) -> tuple[Any, ...]:
        return tuple(numba.typeof(example) for example in self.examples(dtype))

    def _typed(self, _: Any, *given: Any) -> Any:
        dtypes = [dtype for dtype in self.places if self._kinds(dtype) == given]

        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            result = cgutils.alloca_once_value(builder, ir.Constant(ir.IntType(64), -1))
            for dtype in dtypes:
                name = f"{self.name}.{dtype}"
                place = builder.module.globals.get(name) or ir.GlobalVariable(builder.module, ir.IntType(64), name)
                address = builder.load(place)
                with builder.if_then(builder.icmp_signed("!=", address, ir.Constant(ir.IntType(64), 0))):
                    function_type = context.call_conv.get_function_type(types.intp, given)
                    error = cgutils.alloca_once(builder, ir.PointerType())  # never read: kernels do not raise
                    packed = context.get_arg_packer(given).as_arguments(builder, arguments)
                    builder.call(builder.inttoptr(address, function_type.as_pointer()), [result, error, *packed])
            return builder.load(result)

        return types.intp(*given), codegen
