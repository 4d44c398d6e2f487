"""Files of targets: changes, faults, files that come and go."""

import asyncio
import os
from pathlib import Path

from collector.prometheus.discovery.files import FileSource
from collector.prometheus.discovery.source import Found


def look(source: FileSource) -> Found:
    return asyncio.run(source.refresh())


def addresses(found: Found) -> list[str]:
    return [labels["__address__"] for group in found.groups for labels in group]


def write(path: Path, text: str, at_s: int) -> None:
    path.write_text(text)
    os.utime(path, (at_s, at_s))


def test_files_by_pattern_give_targets_with_their_path(tmp_path: Path) -> None:
    write(tmp_path / "a.json", '[{"targets": ["a:1"]}]', 1)
    write(tmp_path / "b.yml", "- targets: [b:1]\n  labels: {x: 1}\n", 1)
    write(tmp_path / "c.txt", "no", 1)
    found = look(FileSource((str(tmp_path / "*.json"), str(tmp_path / "b.yml"))))
    assert addresses(found) == ["a:1", "b:1"]
    assert [group.labels["__meta_filepath"] for group in found.groups] == [
        str(tmp_path / "a.json"),
        str(tmp_path / "b.yml"),
    ]
    assert found.errors == ()


def test_a_changed_file_is_read_again_and_an_unchanged_one_gives_the_same_groups(tmp_path: Path) -> None:
    write(tmp_path / "a.json", '[{"targets": ["a:1"]}]', 1)
    source = FileSource((str(tmp_path / "*.json"),))
    one, same = look(source), look(source)
    assert all(a is b for a, b in zip(one.groups, same.groups, strict=True))
    write(tmp_path / "a.json", '[{"targets": ["a:2"]}]', 2)
    write(tmp_path / "b.json", '[{"targets": ["b:1"]}]', 2)
    assert addresses(look(source)) == ["a:2", "b:1"]


def test_a_broken_file_keeps_its_last_targets_and_is_named_with_its_line_until_mended(tmp_path: Path) -> None:
    write(tmp_path / "a.json", '[{"targets": ["a:1"]}]', 1)
    write(tmp_path / "b.json", '[{"targets": ["b:1"]}]', 1)
    source = FileSource((str(tmp_path / "*.json"),))
    look(source)
    write(tmp_path / "a.json", '[{"targets":\n ["a:2"', 2)
    write(tmp_path / "b.json", '[{"targets": ["b:2"]}]', 2)
    for _ in range(2):
        found = look(source)
        assert addresses(found) == ["a:1", "b:2"]
        assert len(found.errors) == 1
        assert f"{tmp_path / 'a.json'}, line 2" in found.errors[0]
    write(tmp_path / "a.json", '[{"targets": ["a:3"]}]', 3)
    mended = look(source)
    assert (addresses(mended), mended.errors) == (["a:3", "b:2"], ())


def test_the_targets_of_a_file_that_is_gone_are_gone_and_a_named_one_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write(path, '[{"targets": ["a:1"]}]', 1)
    by_name, by_pattern = FileSource((str(path),)), FileSource((str(tmp_path / "*.json"),))
    assert [addresses(look(source)) for source in (by_name, by_pattern)] == [["a:1"], ["a:1"]]
    path.unlink()
    assert look(by_pattern) == Found(())
    found = look(by_name)
    assert found.groups == ()
    assert found.errors == (f"{path}: no such file",)


def test_every_file_is_read_again_after_the_refresh_interval_whatever_its_time(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write(path, '[{"targets": ["a:1"]}]', 1)
    lazy, eager = FileSource((str(path),), refresh_s=300), FileSource((str(path),), refresh_s=0)
    assert [addresses(look(source)) for source in (lazy, eager)] == [["a:1"], ["a:1"]]
    write(path, '[{"targets": ["b:1"]}]', 1)
    assert [addresses(look(source)) for source in (lazy, eager)] == [["a:1"], ["b:1"]]


def test_a_file_that_is_no_text_or_no_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b"\xff[]")
    (tmp_path / "d.json").mkdir()
    write(tmp_path / "z.json", '[{"targets": ["z:1"]}]', 1)
    found = look(FileSource((str(tmp_path / "*.json"),)))
    assert addresses(found) == ["z:1"]
    assert ["UTF-8" in found.errors[0], "d.json" in found.errors[1]] == [True, True]
