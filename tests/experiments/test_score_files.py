"""Score files are read as documented, and what is wrong with one is said."""

from __future__ import annotations

import numpy as np
import pytest

from spantree.experiments.score_files import TRAIN_SENTENCES, ScoreFileError, read_folder, read_treebank


def test_sentences_come_back_as_written(tmp_path, make_score_file):
    arrays = make_score_file(tmp_path / "UD_X-Y.npz", [3, 1, 4])
    treebank = read_treebank(tmp_path / "UD_X-Y.npz")
    assert (treebank.name, treebank.short_name()) == ("UD_X-Y", "X-Y")
    assert treebank.lengths().tolist() == [3, 1, 4]
    np.testing.assert_array_equal(treebank.scores[1].ravel(), arrays["scores"][16:20])
    assert treebank.scores[2].dtype == np.float64
    assert treebank.gold[0].tolist() == [-1, 0, 1, 2]
    np.testing.assert_array_equal(treebank.uniform, arrays["uniform"])


def test_all_sentences_are_uniform_unless_said_otherwise(tmp_path, make_score_file):
    make_score_file(tmp_path / "a.npz", [2, 2], uniform=None)
    assert read_treebank(tmp_path / "a.npz").uniform.tolist() == [True, True]


def test_a_changed_file_has_another_checksum(tmp_path, make_score_file):
    make_score_file(tmp_path / "a.npz", [2], seed=0)
    before = read_treebank(tmp_path / "a.npz").checksum
    make_score_file(tmp_path / "a.npz", [2], seed=1)
    assert read_treebank(tmp_path / "a.npz").checksum != before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"heads": None}, "no array 'heads'"),
        ({"offsets": np.array([0, 9, 17])}, "offsets of 'scores' do not fit"),
        ({"scores": np.zeros(17)}, "offsets of 'scores' do not fit"),
        ({"head_offsets": np.array([0, 2])}, "offsets of 'heads' do not fit"),
        ({"uniform": np.ones(3, dtype=bool)}, "'uniform' has shape"),
    ],
)
def test_what_is_wrong_is_said_with_the_file(tmp_path, make_score_file, changes, message):
    make_score_file(tmp_path / "broken.npz", [2, 2], **changes)
    with pytest.raises(ScoreFileError, match=rf"broken\.npz.*{message}"):
        read_treebank(tmp_path / "broken.npz")


def test_a_folder_is_read_in_order_without_labelled_files(scores_folder):
    treebanks = read_folder(scores_folder)
    assert [treebank.name for treebank in treebanks] == ["UD_Flat-C", "UD_Middle-B", "UD_Sharp-A"]
    assert [treebank.train_sentences for treebank in treebanks] == [30, None, 2000]


def test_training_sizes_without_a_file_of_them(tmp_path, make_score_file):
    for name in ("UD_Kazakh-KTB", "UD_Unheard-Of"):
        make_score_file(tmp_path / f"{name}.npz", [2])
    assert [treebank.train_sentences for treebank in read_folder(tmp_path)] == [TRAIN_SENTENCES["UD_Kazakh-KTB"], None]


def test_folders_that_will_not_do(tmp_path, make_score_file):
    with pytest.raises(ScoreFileError, match="holds no score files"):
        read_folder(tmp_path)
    make_score_file(tmp_path / "a.npz", [2])
    (tmp_path / "treebanks.csv").write_text("name,size\na,3\n")
    with pytest.raises(ScoreFileError, match="columns treebank and train_sentences"):
        read_folder(tmp_path)
