"""Protocols under one guarantee: what each must give up to meet it, and how far it then errs."""
