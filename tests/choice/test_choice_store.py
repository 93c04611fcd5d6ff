"""Policies on disk: read back, reused, refused when damaged."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from choice_fakes import CROSSING, SIZES, FakeBench
from msgspec import convert

from jostle.choice.learning import key_of, learn
from jostle.choice.models import Model, UserModel, forest, regret_tree, tree
from jostle.choice.policy import Store, Stored, default_folder
from jostle.diagnostics import Refusal


def the_file(folder: Path) -> Path:
    [path] = folder.glob("*.json")
    return path


@pytest.mark.parametrize("model", [tree(), regret_tree(), forest(trees=3)], ids=str)
def test_a_policy_is_trained_once_and_read_back_the_same(tmp_path: Path, model: Model) -> None:
    bench = FakeBench(SIZES, CROSSING)
    first = learn(bench, model=model, share=None, epsilon=0.5, store=Store(tmp_path))
    trained = len(bench.calls)
    again = learn(bench, model=model, share=None, epsilon=0.52, store=Store(tmp_path))
    assert trained and len(bench.calls) == trained
    assert again == first
    for size in (3.0, 340.0, 1e5):
        assert again.choose({"size": size}, 0.4) == first.choose({"size": size}, 0.4)
    assert not list(tmp_path.glob("*.part"))


def test_the_document_is_readable(tmp_path: Path) -> None:
    policy = learn(FakeBench(SIZES, CROSSING), model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path))
    document = json.loads(the_file(tmp_path).read_text())
    assert document["policy"]["table"]["options"] == ["Small", "Large"]
    assert document["policy"]["model"] == "tree(depth = 3)"
    assert convert(document["policy"], Stored).read(None) == policy


def test_own_predictions_are_given_back_after_loading(tmp_path: Path) -> None:
    bench = FakeBench(SIZES, CROSSING, own={"Small": lambda f: -7.0})
    first = learn(bench, model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path))
    again = learn(bench, model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path))
    assert again.choose({"size": 2.0}, 1.0) == first.choose({"size": 2.0}, 1.0)


def test_later_calls_get_the_very_same_policy(tmp_path: Path) -> None:
    for own in ({}, {"Small": lambda f: -7.0}):
        bench = FakeBench(SIZES, CROSSING, own=own, key=str(len(own)))
        learn(bench, model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path))
        store = Store(tmp_path)
        first = learn(bench, model=tree(), share=0.1, epsilon=1.0, store=store)
        assert learn(bench, model=tree(), share=0.1, epsilon=1.0, store=store) is first


def test_a_key_covers_what_a_policy_depends_on() -> None:
    bench, other = FakeBench(SIZES, CROSSING), FakeBench(SIZES, CROSSING, key="other")
    keys = {
        key_of(bench, tree(), None, 0.5), key_of(other, tree(), None, 0.5), key_of(bench, tree(depth=2), None, 0.5),
        key_of(bench, tree(), 0.1, 0.5), key_of(bench, tree(), None, 5.0), key_of(bench, tree(), None, None),
    }  # fmt: skip
    assert len(keys) == 6
    assert key_of(bench, tree(), None, 0.5) == key_of(bench, tree(), None, 0.52) != key_of(bench, tree(), None, 0.6)


def damage(how: str, text: str) -> str:
    if how == "cut short":
        return text[: len(text) // 2]
    if how == "a number edited":
        assert '"share": 0.1' in text
        return text.replace('"share": 0.1', '"share": 0.9', 1)
    if how == "not an object":
        return "[1, 2]"
    if how == "digest taken out":
        return json.dumps({k: v for k, v in json.loads(text).items() if k != "digest"})
    if how == "not a number":
        return text.replace('"share": 0.1', '"share": NaN', 1)
    return ""


@pytest.mark.parametrize(
    "how", ["cut short", "a number edited", "not an object", "digest taken out", "not a number", "empty"]
)
def test_a_damaged_document_is_refused(tmp_path: Path, how: str) -> None:
    bench = FakeBench(SIZES, CROSSING)
    learn(bench, model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path))
    path = the_file(tmp_path)
    path.write_text(damage(how, path.read_text()))
    with pytest.raises(Refusal) as refusal:
        learn(bench, model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path))
    first = refusal.value.first
    assert first.kind == "DataError" and str(path) in first.message and "delete" in first.help
    path.unlink()
    assert learn(bench, model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path)).learned


def test_bytes_that_are_no_text_and_a_document_under_another_key_are_refused(tmp_path: Path) -> None:
    bench = FakeBench(SIZES, CROSSING)
    learn(bench, model=tree(), share=0.1, epsilon=1.0, store=Store(tmp_path))
    path = the_file(tmp_path)
    path.rename(tmp_path / "other.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00{")
    for key in ("other", "bytes"):
        with pytest.raises(Refusal) as refusal:
            Store(tmp_path).load(key, ((), ()))
        assert refusal.value.first.kind == "DataError"


def test_a_users_model_stays_in_memory_and_no_two_are_one(tmp_path: Path) -> None:
    def mean(pairs):  # type: ignore[no-untyped-def]
        return lambda x: sum(y for _, y in pairs) / len(pairs)

    def zero(pairs):  # type: ignore[no-untyped-def]
        return lambda x: 0.0

    bench, store = FakeBench(SIZES[:4], CROSSING), Store(tmp_path)
    model = UserModel("mine", mean)
    first = learn(bench, model=model, share=0.1, epsilon=1.0, store=store)
    calls = len(bench.calls)
    assert learn(bench, model=model, share=0.1, epsilon=1.0, store=store) == first
    assert len(bench.calls) == calls and not list(tmp_path.glob("*.json"))
    learn(bench, model=UserModel("mine", zero), share=0.1, epsilon=1.0, store=store)
    assert len(bench.calls) == calls  # another model of the same runs


def test_a_store_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = Store(tmp_path / "file" / "models")
    assert learn(FakeBench(SIZES, CROSSING), model=tree(), share=0.1, epsilon=1.0, store=store).learned


def test_the_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JOSTLE_CACHE", str(tmp_path / "own"))
    assert default_folder() == tmp_path / "own" / "models"
    monkeypatch.delenv("JOSTLE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert default_folder() == tmp_path / "jostle" / "models"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert default_folder() == Path.home() / ".cache" / "jostle" / "models"


def test_who_has_no_home_keeps_models_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("JOSTLE_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    store = Store()
    assert store.folder is None
    policy = learn(FakeBench(SIZES, CROSSING), model=tree(), share=0.1, epsilon=1.0, store=store)
    assert learn(FakeBench(SIZES, CROSSING), model=tree(), share=0.1, epsilon=1.0, store=store) is policy
