"""Counting over arrays: adding, packing and decoding, plain and compiled."""
