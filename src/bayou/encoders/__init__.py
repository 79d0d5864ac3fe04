"""From raw values to features, one file per encoder.

Standardizer       numbers to mean 0 and variance 1, by running moments
Hashing            names and values to columns of sparse rows, without a dictionary

Functions over a box, for latents that are not linear in their inputs (`bayou.contracts.Basis`):

Polynomials        of one input, up to an order
Fourier            sines and cosines of one input
CubicSplines       cubic pieces on equal cells of one input
PiecewiseLinear    interpolation on a lattice of several inputs
RadialFunctions    Gaussian bumps on a lattice of several inputs
RandomFourier      waves in random directions, close to a Gaussian process
TensorProduct      products of any of these, over different inputs
Additive           sums of any of these, over different inputs
UserFunctions      what the user wrote in NumPy
TableEncoder       the columns of a table: numbers, categories, dates and text
SparseEncoder      the entries of rows of libsvm and Vowpal Wabbit
"""

from bayou.encoders.additive import Additive
from bayou.encoders.cubic_splines import CubicSplines
from bayou.encoders.fourier import Fourier
from bayou.encoders.hashing import Hashing
from bayou.encoders.piecewise_linear import PiecewiseLinear
from bayou.encoders.polynomials import Polynomials
from bayou.encoders.radial_functions import RadialFunctions
from bayou.encoders.random_fourier import RandomFourier
from bayou.encoders.sparse_encoder import SparseEncoder
from bayou.encoders.standardizer import Standardizer
from bayou.encoders.table_encoder import TableEncoder
from bayou.encoders.tensor_product import TensorProduct
from bayou.encoders.user_functions import UserFunctions

__all__ = [
    "Additive",
    "CubicSplines",
    "Fourier",
    "Hashing",
    "PiecewiseLinear",
    "Polynomials",
    "RadialFunctions",
    "RandomFourier",
    "SparseEncoder",
    "Standardizer",
    "TableEncoder",
    "TensorProduct",
    "UserFunctions",
]
