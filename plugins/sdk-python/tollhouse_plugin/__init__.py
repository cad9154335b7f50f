"""What the author of a plugin depends on: docs/PLUGINS.md of Tollhouse tells the contract, `wit_world` has its types.

`wit_world` is generated from the contract's WIT, for a test as for the component.
"""
