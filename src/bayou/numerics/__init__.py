"""Compiled arithmetic: kernels, special functions, quadrature, factor updates."""
