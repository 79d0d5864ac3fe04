"""The rules of the design that a reader could overlook, held by tests."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import bayou
from bayou.contracts import Likelihood, Posterior, Rule, Schedule, Spec, Stiffness

COMPONENTS: dict[str, type[Spec]] = {
    "likelihoods": Likelihood,
    "posteriors": Posterior,
    "rules": Rule,
    "schedules": Schedule,
    "stiffness": Stiffness,
}
PACKAGES = sorted(module.name for module in pkgutil.iter_modules(bayou.__path__, "bayou.") if module.ispkg)
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
PICTURE = b"\x89PNG"
SOMEONES_FOLDER = re.compile(r"(?<![\w.])/(home|mnt|opt|root|srv|tmp|Users|work)/\w|\b[A-Z]:\\\w")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LINT, "--no-cache"],
        cwd=folder,
        env={"PYTHONPATH": str(folder / "src"), "PYTHONUTF8": "1"},
        capture_output=True,
        text=True,
        check=False,
    )


def components(package: str) -> dict[str, type[Spec]]:
    """Every concrete component that some module of a package defines, by `module.Class`."""
    found = {}
    home = importlib.import_module(f"bayou.{package}")
    for info in pkgutil.iter_modules(home.__path__, f"{home.__name__}."):
        for name, value in vars(importlib.import_module(info.name)).items():
            if inspect.isclass(value) and issubclass(value, COMPONENTS[package]) and value.__module__ == info.name:
                found[name] = value
    return found


def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def test_imports_point_down(root: Path) -> None:
    result = lint_imports(root)
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("file", "line", "contract"),
    [
        ("errors.py", "import bayou.learner", "Imports point down"),
        ("utils.py", "", "Imports point down"),
        ("likelihoods/probit.py", "import bayou.likelihoods.gaussian", "Components do not know their siblings"),
        ("rules/linearized.py", "import bayou.likelihoods.gaussian", "Components do not know their siblings"),
        ("learner.py", "import numba", "Numba enters through few doors"),
        ("learner.py", "import jax", "JAX enters through one door"),
        ("learner.py", "import sklearn.base", "Scikit-learn and River enter through the estimators"),
        ("modelfile.py", "import pickle", "A model file is data"),
    ],
)
def test_a_breach_is_noticed(root: Path, tmp_path: Path, file: str, line: str, contract: str) -> None:
    shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(root / "pyproject.toml", tmp_path)
    with (tmp_path / "src/bayou" / file).open("a") as source:
        source.write(f"\n{line}\n")
    result = lint_imports(tmp_path)
    assert result.returncode == 1
    assert re.search(f"{contract}.* BROKEN", result.stdout), result.stdout + result.stderr


@pytest.mark.parametrize("package", PACKAGES)
def test_exports_are_sorted_and_true(package: str) -> None:
    module = importlib.import_module(package)
    exported = getattr(module, "__all__", [])
    assert list(exported) == sorted(set(exported))
    assert all(hasattr(module, name) for name in exported)


@pytest.mark.parametrize("package", COMPONENTS)
def test_every_component_is_exported(package: str) -> None:
    home = importlib.import_module(f"bayou.{package}")
    assert set(components(package)) == set(home.__all__) <= set(bayou.__all__)


@pytest.mark.parametrize("package", COMPONENTS)
def test_one_file_per_component_named_after_it(package: str) -> None:
    files = {component.__module__.rpartition(".")[2]: name for name, component in components(package).items()}
    assert files == {snake_case(name): name for name in components(package)}
    home = importlib.import_module(f"bayou.{package}")
    assert set(files) == {info.name for info in pkgutil.iter_modules(home.__path__)}


@pytest.mark.parametrize("name", [name for package in COMPONENTS for name in components(package)])
def test_every_component_has_a_row_in_the_docs(root: Path, name: str) -> None:
    assert re.search(rf"^\| `{name}\b", (root / "docs/components.md").read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", bayou.__all__)
def test_every_public_name_is_in_the_docs(root: Path, name: str) -> None:
    assert any(re.search(rf"\b{name}\b", page.read_text()) for page in (root / "docs").glob("*.md"))


def test_every_page_is_on_the_map_and_every_link_leads_somewhere(root: Path) -> None:
    pages = sorted((root / "docs").glob("*.md"))
    index = (root / "docs/index.md").read_text()
    assert [page.name for page in pages if page.name != "index.md" and f"({page.name})" not in index] == []
    for page in [*pages, *root.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_examples_in_the_pages_run(root: Path, tmp_path: Path, run_python: Callable[..., str], page: str) -> None:
    """A block that opens with the name of a file is such a file, added to the package; any other is a script.

    With such files nothing is found compiled, so that plain Python is quicker.
    """
    files, scripts = {}, []
    for block in re.findall(r"^```python\n(.*?)^```", (root / page).read_text(), re.DOTALL | re.MULTILINE):
        if named := re.match(r"# (src/bayou/\S+\.py)\n", block):
            files[named[1]] = block
        else:
            scripts.append(block)
    assert scripts
    if files:
        shutil.copytree(root / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    package, options = (tmp_path / "src", {"NUMBA_DISABLE_JIT": "1"}) if files else (root / "src", {})
    for script in scripts:
        run_python(script, package=package, cwd=tmp_path, **options)


def test_nothing_names_a_folder_of_someones_machine(root: Path) -> None:
    if not (root / ".git").exists() or not shutil.which("git"):
        pytest.skip("which files belong to the project is known from git alone")
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    for name in filter(None, listed.split("\0")):
        held = (root / name).read_bytes() if (root / name).is_file() else b""
        text = "" if held.startswith(PICTURE) else held.decode("utf-8", errors="ignore")  # whose bytes spell anything
        assert not (found := SOMEONES_FOLDER.search(text)), f"{name} names {found[0]}"
