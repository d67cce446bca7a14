"""Mechanisms for sparse ternary vectors, compared: the common part of the figures of CoCo and SaO2."""
