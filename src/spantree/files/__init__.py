"""Files of trees and of scores, read and written a piece at a time."""

from ._errors import BadFileError, NoMiscError
from .conllu import UNKNOWN, Sentence, chunks_of, read_conllu
from .output import whole_file
from .scores import ScoreBatch, ScoreFile, holds_scores, open_scores
from .trees import Tree, conllu_of, open_bytes, read_trees, sentences_of, write_trees

__all__ = [
    "UNKNOWN",
    "BadFileError",
    "NoMiscError",
    "ScoreBatch",
    "ScoreFile",
    "Sentence",
    "Tree",
    "chunks_of",
    "conllu_of",
    "holds_scores",
    "open_bytes",
    "open_scores",
    "read_conllu",
    "read_trees",
    "sentences_of",
    "whole_file",
    "write_trees",
]
