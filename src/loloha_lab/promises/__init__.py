"""Protocols under one promise: what each must give up to keep it, and how far it then errs."""
