"""Advice on users' jobs: where their ranks, threads and memory really were, and the line to write instead.

``observe.sh`` gives each process of a job the witness, ``steps.py`` makes a small document of each launch and judges it
by the rules of the core, ``spool.py`` keeps documents, ``lint.py`` proves the launch lines of a page.
"""
