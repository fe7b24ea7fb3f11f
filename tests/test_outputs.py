"""Whole or not at all, and never at the cost of somebody else's files."""

from __future__ import annotations

import os
import signal
import stat

import pytest

from precisionnet import load
from precisionnet.cli.options import check_model
from precisionnet.errors import OutputError, PrecisionNetError
from precisionnet.inputs import refuse_missing_table
from precisionnet.outputs import names_in, refuse_foreign, whole_file, whole_folder

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and flock")


def never(_):
    return False


def always(_):
    return True


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def write(place, text="new"):
    with whole_file(place) as scratch:
        scratch.write_text(text)


def write_folder(place, files, is_ours=always):
    with whole_folder(place, is_ours) as scratch:
        for name, text in files.items():
            (scratch / name).parent.mkdir(exist_ok=True)
            (scratch / name).write_text(text)


def everything(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def stopped_child(work):
    """A child that has entered a block and stays there; its leftovers' writer is alive until it is killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with work() as scratch:
                (scratch / "x" if scratch.is_dir() else scratch).write_text("half")
                os.write(writer, b"x")
                signal.pause()
        finally:
            os._exit(1)
    assert os.read(reader, 1) == b"x"
    os.close(reader)
    os.close(writer)
    return child


def kill(child):
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_folder_appears_when_the_block_ends(tmp_path):
    with whole_folder(tmp_path / "a" / "b", never) as scratch:
        (scratch / "x").write_text("1")
        assert not (tmp_path / "a" / "b").exists()
    assert (tmp_path / "a" / "b" / "x").read_text() == "1"
    assert [p.name for p in (tmp_path / "a").iterdir()] == ["b"]


def test_a_failure_takes_everything_with_it_even_the_parents(tmp_path):
    def fail(how):
        with how as scratch:
            (scratch / "x" if scratch.is_dir() else scratch).write_text("1")
            raise ZeroDivisionError

    for how in (whole_folder(tmp_path / "a" / "b", never), whole_file(tmp_path / "c" / "d.csv")):
        with pytest.raises(ZeroDivisionError):
            fail(how)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_appears_meanwhile_is_not_lost(tmp_path):
    """Empty when the work began, somebody's when it ended."""
    place = tmp_path / "out"

    def work():
        with whole_folder(place, never) as scratch:
            (scratch / "x").write_text("ours")
            place.mkdir()
            (place / "thesis.tex").write_text("years of work")

    with pytest.raises(OutputError, match="not an earlier output"):
        work()
    assert (place / "thesis.tex").read_text() == "years of work"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_file_keeps_its_mode_and_a_new_one_has_the_usual(tmp_path):
    os.umask(usual := os.umask(0))
    place = tmp_path / "table.csv"
    write(place)
    assert mode(place) == 0o666 & ~usual
    for bits in (0o600, 0o444, 0o660):
        place.chmod(bits)
        with whole_file(place) as scratch:
            assert mode(scratch) == 0o600  # nobody reads what is to be private
            scratch.write_text(oct(bits))
        assert (place.read_text(), mode(place)) == (oct(bits), bits)


def test_what_is_written_is_flushed_before_it_is_renamed_and_its_name_after(tmp_path, monkeypatch):
    seen = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, real=real: (seen.append(name), real(*given))[1])
    write(tmp_path / "a.csv")
    assert seen == ["fsync", "replace", "fsync"]
    seen.clear()
    write_folder(tmp_path / "new", {"a": "1", "b/c": "2"})
    assert seen.index("replace") >= 4
    assert seen[-1] == "fsync"


def test_a_link_stays_a_link(tmp_path):
    write(tmp_path / "real.csv", "old")
    (tmp_path / "link.csv").symlink_to(tmp_path / "real.csv")
    write(tmp_path / "link.csv")
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "new"


def test_over_an_earlier_output_every_file_is_replaced_where_it_is(tmp_path):
    place, old = tmp_path / "out", {"a": "1", "model/b": "2", "c": "3"}
    write_folder(place, old)
    (place / "model" / "b").chmod(0o600)
    inode = place.stat().st_ino
    seen = []

    def watched(folder):
        seen.append(everything(folder))
        return True

    write_folder(place, {name: text * 2 for name, text in old.items()}, watched)
    assert seen == [old, old]  # nothing has moved until all is ready
    assert everything(place) == {name: text * 2 for name, text in old.items()}
    assert mode(place / "model" / "b") == 0o600
    assert place.stat().st_ino == inode
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_empty_folder_is_filled_and_keeps_its_mode(tmp_path):
    place = tmp_path / "out"
    place.mkdir(mode=0o700)
    write_folder(place, {"a": "1"}, never)
    assert everything(place) == {"a": "1"}
    assert mode(place) == 0o700


def test_a_folder_in_place_of_a_file_and_the_other_way_round(tmp_path):
    (tmp_path / "folder").mkdir()
    write(tmp_path / "file")
    with pytest.raises(OutputError, match="not an ordinary file"):
        write(tmp_path / "folder")
    with pytest.raises(OutputError, match="it is a file"):
        write_folder(tmp_path / "file", {"a": "1"})
    with pytest.raises(OutputError, match="is a file"):
        write(tmp_path / "file" / "below")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


@forks
@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_the_dead_left_behind_goes_and_the_living_are_left_alone(tmp_path, kind):
    place = tmp_path / "place"
    enter = (lambda: whole_file(place)) if kind == "file" else (lambda: whole_folder(place, always))
    again = (lambda: write(place)) if kind == "file" else (lambda: write_folder(place, {"a": "1"}))
    mine = tmp_path / ".partial-0a1b2c3d-thesis.tex"  # of another place
    mine.write_text("years of work")
    similar = tmp_path / ".partial-place"
    similar.write_text("no name of ours")
    dead, living = stopped_child(enter), stopped_child(enter)
    kill(dead)
    try:
        assert len(list(tmp_path.iterdir())) == 4
        again()
        assert len(list(tmp_path.iterdir())) == 4  # the place and what the living writes into
    finally:
        kill(living)
    again()
    assert {path.name for path in tmp_path.iterdir()} == {place.name, mine.name, similar.name}
    assert names_in(tmp_path) == {place.name, similar.name}


@forks
def test_a_folder_with_nothing_but_leftovers_counts_as_empty(tmp_path):
    place = tmp_path / "out"
    kill(stopped_child(lambda: whole_file(place / "model.safetensors")))
    assert len(list(place.iterdir())) == 1
    refuse_foreign(place, never)
    (place / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="not an earlier output"):
        refuse_foreign(place, never)


@forks
def test_without_locks_age_tells(tmp_path, monkeypatch):
    import fcntl

    def refuse(*_):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    fresh, old = tmp_path / ".partial-0a1b2c3d-a.csv", tmp_path / ".partial-1a1b2c3d-a.csv"
    fresh.write_text("")
    old.write_text("")
    os.utime(old, (0, 0))
    write(tmp_path / "a.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"a.csv", fresh.name}


def test_a_scratch_file_that_another_took_for_dead_is_made_again(tmp_path, monkeypatch):
    from precisionnet import outputs

    real, taken = outputs._lock, []

    def unlucky(scratch):
        if len(taken) < 3:
            taken.append(scratch)
            scratch.unlink()
        return real(scratch)

    monkeypatch.setattr(outputs, "_lock", unlucky)
    write(tmp_path / "a.csv")
    assert [path.name for path in tmp_path.iterdir()] == ["a.csv"]


def test_a_nul_in_a_name_is_a_sentence(tmp_path):
    with pytest.raises(OutputError, match="Cannot write"), whole_file(f"{tmp_path}/a\0b.csv"):
        pass


@forks
def test_places_without_permission_are_a_sentence(tmp_path):
    """As an ordinary user, also where the tests run as root: a folder that may not even be looked into."""
    private = tmp_path / "private"
    private.mkdir(mode=0o000)
    for folder in [tmp_path, *tmp_path.parents]:  # the way there must be open to that user
        if folder.stat().st_uid == os.getuid() and folder.name.startswith("pytest"):
            folder.chmod(0o755)
    place = str(private / "x")

    def enter(manager):
        with manager:
            raise AssertionError("entered")

    attempts = [
        lambda: enter(whole_folder(place, never)), lambda: enter(whole_file(place)), lambda: refuse_foreign(place, never),
        lambda: refuse_missing_table(place), lambda: check_model(place), lambda: load(place),
    ]  # fmt: skip
    child = os.fork()
    if child == 0:
        code = 100
        try:
            if os.getuid() == 0:
                os.setuid(65534)
            code = len(attempts) - sum(is_sentence(attempt, place) for attempt in attempts)
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    private.chmod(0o700)
    assert os.waitstatus_to_exitcode(status) == 0


def is_sentence(attempt, place):
    try:
        attempt()
    except PrecisionNetError as error:
        return place in str(error)
    return False
