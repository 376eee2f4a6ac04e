"""specnb: measure, derive, solve and run speculative decoding on your own machine."""

__version__ = "0.1.0"
