"""All results that one page shows: a file of times, and what lies beside it under the same name."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lowlp.benchmarks.activations.plots import effective_tops
from lowlp.benchmarks.attention import results as of_attention
from lowlp.benchmarks.attention.results import AttentionResults
from lowlp.benchmarks.attention.versions import versions_picture
from lowlp.benchmarks.decoding_results import MARK as DECODING_MARK
from lowlp.benchmarks.decoding_results import DecodingResults, decoding_picture
from lowlp.benchmarks.experts import results as of_experts
from lowlp.benchmarks.experts.results import ExpertsResults
from lowlp.benchmarks.models.model_results import MODELS_MARK, ModelResults
from lowlp.benchmarks.models.pictures import drawn_picture
from lowlp.benchmarks.plots import ablation_picture, plots
from lowlp.benchmarks.results import Results, Run, merged
from lowlp.drawing.picture import Picture
from lowlp.drawing.svg import to_svg

ACTIVATIONS_MARK: Final = ".activations-"
"""In the names of files that the pages of NAME.json show: NAME.activations-1.json."""
CODEBOOKS_MARK: Final = ".codebooks-"
"""The same of times of codebooks, with those of int4 of the same run."""
_VERSIONS_OF_BOOKS: Final = "codebook-versions"
_TOPS_END: Final = "-tops.svg"
_VERSIONS_END: Final = "-versions.svg"
_NOTES_END: Final = ".notes.md"


@dataclass(frozen=True)
class Measured:
    """Results, with the files that they are from.

    data         NAME.json
    results      its times
    drawn        runs on drawn problems, NAME.models-*.json
    attention    NAME.attention-*.json
    activations  NAME.activations-*.json
    experts      NAME.experts-*.json
    decoding     NAME.decoding-*.json
    codebooks    NAME.codebooks-*.json
    notes        Markdown by subject, NAME.SUBJECT.notes.md; that of '' is NAME.notes.md
    """

    data: Path
    results: Results
    drawn: Mapping[Path, ModelResults] = field(default_factory=dict)
    attention: Mapping[Path, AttentionResults] = field(default_factory=dict)
    activations: Mapping[Path, Results] = field(default_factory=dict)
    experts: Mapping[Path, ExpertsResults] = field(default_factory=dict)
    decoding: Mapping[Path, DecodingResults] = field(default_factory=dict)
    codebooks: Mapping[Path, Results] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def beside(results: Results, data: Path) -> Measured:
        """Reads all that lies beside NAME.json. Raises `LowlpValueError` where a file holds no such results."""

        def paths(mark: str) -> list[Path]:
            return sorted(data.parent.glob(f"{data.stem}{mark}*.json"))

        return Measured(
            data,
            results,
            {path: ModelResults.load(path) for path in paths(MODELS_MARK)},
            {path: AttentionResults.load(path) for path in paths(of_attention.MARK)},
            {path: Results.load(path) for path in paths(ACTIVATIONS_MARK)},
            {path: ExpertsResults.load(path) for path in paths(of_experts.MARK)},
            {path: DecodingResults.load(path) for path in paths(DECODING_MARK)},
            {path: Results.load(path) for path in paths(CODEBOOKS_MARK)},
            {
                path.name.removeprefix(data.stem).removesuffix(_NOTES_END).removeprefix("."): path.read_text("utf-8")
                for path in sorted(data.parent.glob(f"{data.stem}*{_NOTES_END}"))
            },
        )

    @property
    def books(self) -> Results:
        """The times with those of codebooks, of int4 those of their runs."""
        return merged([self.results, *self.codebooks.values()])

    def _plots(self) -> dict[str, Picture]:
        """By name."""
        found = plots(self.results)
        versions = ablation_picture(self.books)
        return found if versions is None else {**found, _VERSIONS_OF_BOOKS: versions}

    def pictures(self) -> dict[Path, str]:
        """SVG by the path that it is kept under, beside the results."""
        found = {
            self.data.with_name(f"{self.data.stem}-{name}.svg"): to_svg(one) for name, one in self._plots().items()
        }
        for path, one in self.activations.items():
            if tops := effective_tops(one):
                found[tops_path(path)] = to_svg(tops)
        for path, steps in self.decoding.items():
            if drawn := decoding_picture(steps):
                found[decoding_path(path)] = to_svg(drawn)
        for path, timed in self.attention.items():
            if versions := versions_picture(timed):
                found[versions_path(path)] = to_svg(versions)
        if (of_drawn := self.drawn_path) and (problems := drawn_picture(self._drawn_alike)):
            found[of_drawn] = to_svg(problems)
        return found

    @property
    def _drawn_alike(self) -> list[ModelResults]:
        """Runs of drawn problems on the GPU of the times."""
        return [one for one in self.drawn.values() if one.run.gpu == self.results.runs[0].gpu]

    @property
    def drawn_path(self) -> Path | None:
        """Of the plot of drawn problems, None where there are none."""
        return self.data.with_name(f"{self.data.stem}-drawn.svg") if self._drawn_alike else None

    def picture(self, name: str) -> Path | None:
        """The path of a plot of the times, None where nothing was measured for it."""
        path = self.data.with_name(f"{self.data.stem}-{name}.svg")
        return path if name in self._plots() else None


def tops_path(results: Path) -> Path:
    """Of the plot of operations a second that belongs to a file of quantised activations."""
    return results.with_name(results.stem + _TOPS_END)


def versions_path(results: Path) -> Path:
    """Of the plot of the paper's versions that belongs to a file of attention."""
    return results.with_name(results.stem + _VERSIONS_END)


def decoding_path(results: Path) -> Path:
    """Of the plot of tokens per second that belongs to a file of steps."""
    return results.with_suffix(".svg")


@dataclass(frozen=True)
class Linker:
    """Writes links from a page in a folder."""

    folder: Path

    def link(self, text: str, path: Path) -> str:
        """`[text](path)`, relative to the folder."""
        return f"[{text}]({Path(os.path.relpath(path, self.folder)).as_posix()})"

    def picture(self, path: Path | None) -> str:
        """A picture, or '' where there is none."""
        return "" if path is None else f"!{self.link(path.stem, path)}"

    def runs(self, found: Mapping[Path, Run]) -> str:
        """Each run as a line, with a link to its file."""
        return "\n".join(f"{describe(run)}; {self.link('results', path)}" for path, run in found.items())


def describe(run: Run, number: int = 1, count: int = 1) -> str:
    """A run as a line of a list of `count`."""
    versions = ", ".join(f"{name} {version}" for name, version in run.versions.items() if version)
    absent = [name for name, version in run.versions.items() if not version]
    facts = [
        f"- {f'run {number}: ' if count > 1 else ''}{run.date}, {run.gpu}, driver {run.driver}; {versions}",
        "" if run.empty_us is None else f"empty kernel {run.empty_us:.2f} us",
        f"floors from {run.read_bytes_per_s / 1e12:.2f} TB/s",
        "" if run.measured_read is None else f"sum over 2 GiB at {run.measured_read / 1e12:.2f} TB/s",
        "" if run.host_us is None else f"a cached call of `linear` costs the host {run.host_us:.1f} us",
        "" if run.module_us is None else f"of a module with a bias {run.module_us:.1f} us",
        f"absent: {', '.join(absent)}" if absent else "",
        *run.notes,
    ]
    return "; ".join(fact for fact in facts if fact)


def describe_all(runs: Sequence[Run]) -> str:
    """Runs as a list."""
    return "\n".join(describe(run, number, len(runs)) for number, run in enumerate(runs, 1))
