"""The arithmetic of counts over arrays: adding, packing and decoding, plain and compiled."""
