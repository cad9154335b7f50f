"""The SDK for Tollhouse plugins in Python.

docs/PLUGINS.md of Tollhouse describes the contract, and `wit_world` has its types. Both tests and
builds generate `wit_world` from the contract's WIT.
"""
