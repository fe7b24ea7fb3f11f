"""Which public files make up each data set, where they are, and how to know them: address, sha256, description.

The addresses name a commit, so the files behind them never change. What a data set is, its terms and its citation stand
in one Markdown file each, under ``descriptions/``; what is printed and what is kept beside the files both come from it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import resources

from precisionnet.errors import InputError, did_you_mean


@dataclass(frozen=True)
class RemoteFile:
    """One file: its place below the data folder, its public address, and the hash that proves it is the right one."""

    name: str
    url: str
    sha256: str

    @property
    def base_name(self) -> str:
        """The name without the folder of the data set."""
        return self.name.rpartition("/")[2]


@dataclass(frozen=True)
class RemoteDataset:
    """The files of one data set; everything said about them is read from the description."""

    name: str
    files: tuple[RemoteFile, ...]

    @property
    def description(self) -> str:
        """All that is known of the data set, as Markdown."""
        folder = resources.files("precisionnet.datasets.public").joinpath("descriptions")
        return folder.joinpath(f"{self.name}.md").read_text(encoding="utf-8")

    @property
    def title(self) -> str:
        """The first heading of the description."""
        return self.description.partition("\n")[0].removeprefix("# ")

    @property
    def terms(self) -> str:
        """The terms under which the data may be used."""
        return self._section("Terms of use")

    @property
    def citation(self) -> str:
        """The citation for work that uses the data."""
        return self._section("Citation")

    def _section(self, heading: str) -> str:
        found = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", self.description, re.MULTILINE | re.DOTALL)
        assert found is not None, f"descriptions/{self.name}.md has no section {heading!r}"
        return found[1].strip()


def find_dataset(name: str) -> RemoteDataset:
    """The data set of that name; any other name is refused with the nearest one."""
    if str(name) not in DATASETS:
        raise InputError(
            f"There is no data set {name!r}{did_you_mean(str(name), DATASETS)}: choose one of {', '.join(DATASETS)}."
        )
    return DATASETS[str(name)]


def describe(name: str) -> str:
    """What a data set holds, where it comes from, its terms of use and its citation, as Markdown."""
    return find_dataset(name).description


def _raw(repository_at_commit: str, path: str) -> str:
    repository, _, commit = repository_at_commit.partition("@")
    return f"https://raw.githubusercontent.com/{repository}/{commit}/{path}"


_FREESURFER = "dfsp-spirit/abide_preproc_smri_freesurfer6@869ca75f49cd3e799035109819c43cc6a779156e"
_PHENOTYPES = "preprocessed-connectomes-project/abide@fda1ec5d3f53eb97d94352e779f37c3ce46caee1"
_ANTS = "ntustison/KapowskiChronicles@4d7aafaa39135c29bfb073d0d17fa0c0166b01ad"

DATASETS = {
    "abide": RemoteDataset(
        "abide",
        (
            RemoteFile(
                "abide/lh.aparc_table_thickness.tsv",
                _raw(_FREESURFER, "stats/lh.aparc_table_thickness.tsv"),
                "3adfe188709d229523e2bab74514a7c9e992e56409b98471b1ab3a2f3935b622",
            ),
            RemoteFile(
                "abide/rh.aparc_table_thickness.tsv",
                _raw(_FREESURFER, "stats/rh.aparc_table_thickness.tsv"),
                "cbc05573a508a3340074074308441cb4bbc741b13071cdcef4e0dac36894edf2",
            ),
            RemoteFile(
                "abide/Phenotypic_V1_0b_preprocessed1.csv",
                _raw(_PHENOTYPES, "Phenotypic_V1_0b_preprocessed1.csv"),
                "009f01a89697113e5375ded4fbcff4c85e89a4daa6d13e63c21ae5d57dda0865",
            ),
        ),
    ),
    "ants_mindboggle": RemoteDataset(
        "ants_mindboggle",
        tuple(
            RemoteFile(
                f"ants_mindboggle/labelresultsANTs{cohort}.csv",
                _raw(_ANTS, f"analytics2/labelresultsANTs{cohort}.csv"),
                sha256,
            )
            for cohort, sha256 in {
                "I": "0891bebdc4aac7031e304b8950987a555a510f23839070e790a85ffbcbe11b7c",
                "K": "21b5381e703e6ba34dd0d918f53538e0fd5dfb0ade64fd435a47c43a17f0a14f",
                "N": "e00fc3aa3e2709c877d52608f3a1ca625e3dd8f9ce42699d06e8e4daa95b6783",
                "O": "963a6b059d0a24a9f0ac0e4f6eca0c3eaee4c64b7cc8a8fc8cf5c9959f0e9600",
            }.items()
        ),
    ),
}
"""Every data set that can be fetched, by name."""
