"""What a process sees of the library beside its answers: nothing is printed, and little is imported."""

from __future__ import annotations

import subprocess
import sys

# Everything is asked once, and references to all kinds of objects are still there at the end.
ASK = """
import numpy as np, spantree
dist = spantree.TreeDistribution(np.zeros((2, 4, 4)), on_infeasible="mask")
kept = [dist, dist.argmax(), dist.marginals(), dist.sample_without_replacement(2, rng=0), dist[0].iter_best()]
kept += [next(kept[-1]), dist[0].iter_without_replacement(rng=0), spantree.decode([np.zeros((3, 3))])]
kept.append(kept)
spantree.kept = kept
def hold(): return kept
"""

# What takes long to import, or is not among the dependencies.
SLOW = {"importlib.metadata", "scipy", "matplotlib", "networkx", "pyarrow", "torch", "jax", "numpy.ma", "email"}


def run(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=300)


def test_nothing_is_printed():
    done = run(ASK)
    assert done.stdout == ""
    assert done.stderr == ""


def test_the_first_call_imports_nothing():
    """While a module is being imported another thread may run, and must not have to wait for it inside of the core."""
    done = run("""
import builtins, numpy as np, spantree
imported, real = [], builtins.__import__
def recorder(name, *rest, **options):
    imported.append(name)
    return real(name, *rest, **options)
builtins.__import__ = recorder
spantree.decode(np.zeros((3, 3)))
spantree.TreeDistribution(np.zeros((3, 3))).marginals()
print(imported)
""")
    assert done.stdout == "[]\n"


def test_little_is_imported():
    modules = set(run("import spantree, sys; print(*sys.modules)").stdout.split())
    bare = set(run("import numpy, sys; print(*sys.modules)").stdout.split())
    assert not SLOW & (modules - bare)
    ours = {name for name in modules if name.startswith("spantree.")}
    assert not {
        name for name in ours if name.split(".")[1] in ("zoo", "experiments", "view", "files", "samples", "demo")
    }


def test_parts_are_imported_by_who_asks_for_them():
    """And a library that is missing is named, with what to do about it."""
    done = run("""
import spantree, sys
for library in ("torch", "jax"):
    sys.modules[library] = None
    try:
        getattr(spantree, library)
    except ImportError as error:
        print(error)
print(spantree.compat.__name__, spantree.zoo.__name__, hasattr(spantree, "nothing"))
""")
    assert done.stdout.splitlines() == [
        "spantree.torch needs PyTorch: pip install 'spantree[torch]'",
        "spantree.jax needs JAX: pip install 'spantree[jax]'",
        "spantree.compat spantree.zoo False",
    ]


def test_memory_is_given_back():
    """Decoding a long sentence takes a hundred megabytes; few of them are kept for the next one."""
    done = run("""
import resource, numpy as np, spantree
def megabytes():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 2**20
scores = np.random.default_rng(0).normal(size=(1601, 1601))
for options in ({}, {"projective": True}):
    spantree.decode(scores[:9, :9], **options)
    before = megabytes()
    spantree.decode(scores, **options)
    print(megabytes() - before)
""")
    assert all(float(line) < 64 for line in done.stdout.splitlines()), done.stdout


ENDING = """
import threading
import numpy as np, spantree
sentence, batch = np.zeros((4, 4)), np.random.default_rng(0).normal(size=(200, 41, 41))
def endless(ask, answered):
    while True:
        ask()
        answered.set()
asks = [
    lambda: spantree.marginals(sentence),
    lambda: spantree.decode([sentence] * 50),
    lambda: spantree.TreeDistribution(batch).entropy(with_grad=True),
    lambda: spantree.topk(sentence, 16),
    lambda: spantree.sample(batch, 3, projective=True),
]
answered = [threading.Event() for _ in asks]
for each in zip(asks, answered):
    threading.Thread(target=endless, args=each, daemon=True).start()
for event in answered:
    event.wait()
"""


def test_other_threads_may_be_at_work_when_the_process_ends():
    for _ in range(3):
        assert run(ENDING).stderr == ""


def test_a_long_call_of_another_thread_does_not_hold_up_the_end():
    done = run("""
import threading
import numpy as np, spantree
scores = 300 * np.random.default_rng(0).normal(size=(1, 301, 301)).repeat(300, 0)  # for a minute
begun = threading.Event()
def ask():
    begun.set()
    spantree.marginals(scores)
threading.Thread(target=ask, daemon=True).start()
begun.wait()
""")
    assert done.stderr == ""


def test_questions_at_the_end_are_answered():
    """By functions that were registered to run then; also in a child that was forked while others were at work."""
    done = run(
        """
import atexit, os, warnings
def last():
    print(spantree.TreeDistribution(np.zeros((20, 12, 12))).entropy().shape, flush=True)
    print(len(spantree.TreeDistribution(np.zeros((12, 12)), projective=True).topk(1000).heads), flush=True)
atexit.register(last)
"""
        + ENDING
        + """
warnings.simplefilter("ignore")  # that forks and threads do not go together
child = os.fork()
if child:
    assert os.waitpid(child, 0)[1] == 0
"""
    )
    assert done.stdout == "(20,)\n1000\n" * 2
    assert done.stderr == ""
