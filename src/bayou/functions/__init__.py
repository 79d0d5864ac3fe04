"""Functions of features and weights that are not linear in the weights, one file each."""

from bayou.functions.jax_function import JaxFunction
from bayou.functions.network import Network

__all__ = ["JaxFunction", "Network"]
