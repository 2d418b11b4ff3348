"""Other libraries' names and conventions over spantree: change one import.

One module a library: `spantree.compat.ufal`, `.stanza`, `.networkx`, `.supar`, `.torch_struct`, `.synjax`. Import
each by its full name; it needs the library that its arguments belong to (networkx, PyTorch) and no other.
"""
