"""The experiments of the papers, each with the zoo's algorithms and this library's core side by side.

``python -m spantree.experiments NAME --output FOLDER`` writes tables and figures to a folder; ``all`` runs every
experiment, ``--quick`` only shows that everything works, ``--scores`` names a folder of trained parsers' scores in the
format of `score_files`. An experiment that was interrupted goes on where it stopped. What they need beyond NumPy:
``pip install 'spantree[experiments]'``.
"""
