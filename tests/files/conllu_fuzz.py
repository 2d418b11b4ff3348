"""`make fuzz`: random bytes and mutated CoNLL-U through the patcher, by libFuzzer (atheris).

python tests/files/conllu_fuzz.py -runs=1000000
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["spantree.files"]):
    import spantree.files  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent))
from conllu_rules import check_bytes

TOKENS = [
    b"1\t",
    b"2\t",
    b"3\t",
    b"1-2\t",
    b"1.1\t",
    b"_\t",
    b"HeadProb=",
    b"Margin=0|",
    b"\t",
    b"\n",
    b"\r\n",
    b"#",
    b"|",
]
TOKENS += [b"\xef\xbb\xbf", b"\n\n", b"a\t_\t_\t_\t_\t0\troot\t_\t_", b"b\t_\t_\t_\t_\t1\tobj\t_\tA=1\r", b"\xff", b" "]


def one_input(data: bytes) -> None:
    """The first byte says how to read the rest: as it is, or as tokens of CoNLL-U; and in which chunks."""
    if not data:
        return
    body = data[1:] if data[0] % 2 else b"".join(TOKENS[byte % len(TOKENS)] for byte in data[1:])
    check_bytes(body, chunk=(1, 7, 1 << 20)[data[0] // 2 % 3])


if __name__ == "__main__":
    atheris.Setup(sys.argv, one_input)
    atheris.Fuzz()
