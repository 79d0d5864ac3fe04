"""numba's one door: compiled kernels, kept on disk, called through addresses.

Kernels are cached in a folder named by a hash of the sources that they can be made of, because numba itself does not
notice an edited callee in another file. Components meet as addresses (integers) rather than as arguments or closures,
because only those let a later process find what an earlier one has compiled. With NUMBA_DISABLE_JIT=1 kernels are
plain functions and their own addresses.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from bayou.contracts import Kernel

F = TypeVar("F", bound=Callable[..., Any])

COMPILED = not numba.config.DISABLE_JIT
CACHES_KEPT = 4

# NaN and infinity keep their meaning: kernels recognise a bad row by them.
REORDERING = {"reassoc", "contract", "arcp", "nsz"}


def source_hash(package: Path) -> str:
    """Hash of every file that a kernel can be made of: all of each part in which some file defines kernels."""
    parts: dict[str, list[Path]] = {}
    for path in sorted(package.rglob("*.py")):
        parts.setdefault(path.relative_to(package).parts[0], []).append(path)
    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    for part, paths in parts.items():
        sources = [path.read_bytes() for path in paths]
        defines_kernels = any(b"numerics.jit" in source or b"numerics import jit" in source for source in sources)
        if defines_kernels or part in ("contracts.py", "numerics"):
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
        compiled: F = numba.njit(cache=_CACHE is not None, nogil=True, error_model="numpy", **options)(function)
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


def rebound(template: F, module: str, **callees: Kernel) -> F:
    """A copy of a plain function that calls these kernels where it names them; to be compiled for that module.

    It is how one text of a loop serves many components: as an argument or in a closure the callee would keep the
    compiled loop out of the disk cache.
    """
    copy = FunctionType(template.__code__, {**template.__globals__, **callees}, template.__name__)
    copy.__module__ = module
    copy.__qualname__ = f"{module}.{template.__name__}"
    return copy  # type: ignore[return-value]  # the same signature as the template


def entry_point(function: Kernel, *arguments: Any) -> Kernel:
    """The kernel compiled for arguments of just these types, without the look at each argument at every call.

    It trusts its caller: arguments of other types are not noticed.
    """
    if not COMPILED:
        return function
    compiled: Kernel = function.compile(tuple(numba.typeof(argument) for argument in arguments))  # type: ignore[attr-defined]  # a numba dispatcher
    return compiled


_NAMED = {
    "float": types.float64,
    "vector": types.Array(types.float64, 1, "C"),
    "addresses": types.Array(types.intp, 1, "C"),
}


class Pointer:
    """A call through an address: what kind of kernel, in which slot of the addresses, with which signature.

    In a kernel, ``call = pointer.caller`` must be a module-level name: ``call(addresses, *arguments)``.
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
        return result.library.get_pointer_to_function(result.fndesc.llvm_cfunc_wrapper_name)

    def _plain_caller(self, addresses: Sequence[Callable[..., Any]], *arguments: Any) -> Any:
        return addresses[self.slot](*arguments)

    def _compiled_caller(self) -> Callable[..., Any]:
        slot, signature = self.slot, self.signature
        addresses = _NAMED["addresses"]

        def codegen(context: Any, builder: Any, _: Any, arguments: Any) -> Any:
            table = context.make_array(addresses)(context, builder, arguments[0])
            address = builder.load(builder.gep(table.data, [ir.Constant(ir.IntType(64), slot)]))
            result = context.get_value_type(signature.return_type)
            accepted = [context.get_value_type(argument) for argument in signature.args]
            function = builder.inttoptr(address, ir.PointerType(ir.FunctionType(result, accepted)))
            return builder.call(function, list(arguments[1:]))

        arity = len(signature.args)
        return _intrinsic_of_arity(arity, signature.return_type(addresses, *signature.args), codegen)


def _intrinsic_of_arity(arity: int, signature: Any, codegen: Any) -> Kernel:
    """numba reads an intrinsic's arity from its Python signature, so there is one shape per number of arguments."""

    def typed(_: Any, *arguments: Any) -> Any:
        return signature, codegen

    shapes: dict[int, Any] = {
        3: lambda typing, table, a, b, c: typed(typing),
        4: lambda typing, table, a, b, c, d: typed(typing),
        5: lambda typing, table, a, b, c, d, e: typed(typing),
        6: lambda typing, table, a, b, c, d, e, f: typed(typing),
        7: lambda typing, table, a, b, c, d, e, f, g: typed(typing),
    }
    caller: Kernel = intrinsic(shapes[arity])
    return caller


def addresses(functions: Sequence[tuple[Pointer, Callable[..., Any]]]) -> Any:
    """The table that kernels look others up in, by slot."""
    if not COMPILED:
        table: list[Any] = [None] * (1 + max(pointer.slot for pointer, _ in functions))
    else:
        table = np.zeros(1 + max(pointer.slot for pointer, _ in functions), dtype=np.intp)  # type: ignore[assignment]
    for pointer, function in functions:
        table[pointer.slot] = pointer.address(function)
    return table if COMPILED else tuple(table)
