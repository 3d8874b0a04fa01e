"""Strategies for decode_attention on Triton: launch values, the body's forms, a cache split over programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.agents.playbook import decode_attention_kernels as forms
from harness.agents.playbook import edit
from harness.agents.playbook.arithmetic import multiprocessors, over_shapes
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import table_move, value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = forms.NAME
RESIDENT = 2
"""Programs per multiprocessor, about, from which on memory is busy."""
BUCKETS = ("short", "medium", "long", "longer", "huge", "giant")
LEVEL = {"PROGRAMS": 64, "SPAN": 512}
"""Values of the bucket whose batches hold lengths of all sizes: parts of 512 positions, however many."""
DEEP = {"medium": 2, "long": 4, "longer": 4}
"""Stages of a program's pipeline where it has a multiprocessor to itself, and two of caches too short to fill more."""


def _body(**change: bool) -> Callable[[AgentContext], str | None]:
    """A transform that gives the kernels another form."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        form = forms.form_of(source)
        if form is None or replace(form, **change) == form:
            return None
        changed = replace(form, **change)
        source = edit.replace_body(source, NAME, forms.body(changed))
        if not forms.is_split(source):
            return source
        source = edit.replace_function(source, forms.PART, forms.part(changed))
        return edit.replace_function(source, forms.COMBINE_NAME, forms.combine(changed))
    return transform


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    form = forms.form_of(source)
    if form is None or forms.is_split(source):
        return None
    source = edit.replace_function(source, "run", forms.RUN_HEAD + forms.RUN_FIXED + forms.RUN_TAIL)
    source = edit.insert_before(edit.insert_before(source, "run", forms.part(form)), "run", forms.combine(form))
    return edit.set_params(source, {"SPLITS": 16}).replace("import triton\n", "import torch\nimport triton\n", 1)


def _chosen(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not forms.is_split(source) or "PROGRAMS" in edit.params(source):
        return None
    source = edit.replace_function(source, "run", forms.RUN_HEAD + forms.RUN_CHOSEN + forms.RUN_TAIL)
    tables = {key: {name: LEVEL[key] if name == "huge" else value for name in BUCKETS}
              for key, value in (("SPAN", 64), ("PROGRAMS", RESIDENT))}
    return edit.set_params(source, {"SPLITS": 128, **tables})


def _deep(context: AgentContext) -> str | None:
    source = context.incumbent.source
    values = edit.params(source)
    programs, stages = values.get("PROGRAMS"), values.get("num_stages")
    if not isinstance(programs, dict) or not isinstance(stages, int):
        return None
    alone = {name: 1 if DEEP.get(name, 0) > 2 else value for name, value in programs.items()}
    return edit.set_params(source, {"num_stages": {name: DEEP.get(name, max(3, stages)) for name in BUCKETS},
                                    "PROGRAMS": alone})


def _dependent(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not forms.is_split(source):
        return None
    changed = _body(dependent=True)(context)
    return None if changed is None else forms.launched(changed)


def _together(context: AgentContext) -> str | None:
    source = context.incumbent.source
    form = forms.form_of(source)
    if form is None or not forms.is_split(source) or form.two or form.peeled or form.dependent:
        return None
    changed = _body(two=True, peeled=True, dependent=True)(context)
    return None if changed is None else forms.launched(changed)


def _idle(context: AgentContext) -> float:
    """What filling the device gives where one program per sequence and cache head leaves it idle."""
    wanted = RESIDENT * multiprocessors(context)
    return over_shapes(context, lambda dims: wanted / min(wanted, dims["batch"] * dims["kv_heads"]))


def moves(context: AgentContext) -> list[Move]:
    """All strategies; on a machine without a GPU nothing is timed and predictions rest on the cost model alone."""
    return [
        Move("split-cache", Direction.SPLIT_REDUCTION, NAME, Tier.HEAVY,
             "Split every sequence over up to 16 programs with a weighted mean each and the logarithm of its weight, "
             "combine them in a second kernel: one program per sequence and cache head is 8 programs at batch 1, on "
             f"{multiprocessors(context)} multiprocessors. Programs of parts past a length leave at once. Costs a "
             "launch.",
             "cache split over programs, then a combining kernel", 0.9, 4.0, _split,
             evidence="hardware.multiprocessors", basis="occupancy", model=_idle),
        Move("split-by-length", Direction.LAUNCH, NAME, Tier.HEAVY,
             f"Choose the number of parts from length and batch, so that about {RESIDENT} programs per multiprocessor "
             "run, and leave sequences whole where a batch is that many already: 16 parts are too few for one long "
             f"sequence, and 64 sequences need none. Batches of mixed lengths get parts of {LEVEL['SPAN']} positions, "
             "which level them out.",
             "parts chosen by length and batch, whole sequences where there are enough", 0.5, 0.3, _chosen,
             evidence="hardware.multiprocessors", basis="occupancy"),
        Move("deep-pipelines", Direction.PIPELINING, NAME, Tier.LIGHT,
             "Give caches of 2,049 to 8,192 positions one program per multiprocessor with four stages: as many bytes "
             "are on their way as with two programs of three stages, and the combining kernel has half as many parts "
             "to read. Longer caches keep two programs, short ones two stages.",
             "four stages and one program per multiprocessor for middling lengths", 0.5, 0.1, _deep,
             evidence="tunables", basis="latency"),
        Move("dependent-launch", Direction.LAUNCH, NAME, Tier.HEAVY,
             "Launch the combining kernel while parts are still computed and let it wait for them itself: its launch, "
             "one to two microseconds, is then over when the last part is. That counts where a call takes tens of "
             "them.",
             "combining kernel launched early, waiting for the parts", 0.5, 0.08, _dependent, basis="latency"),
        Move("whole-blocks", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Take whole blocks without a mask over positions and advance one pair of addresses, and mask the last "
             "block alone: fewer instructions between loads.", "unmasked whole blocks, a masked rest", 0.2, 0.15,
             _body(peeled=True), basis="latency"),
        Move("shorter-way", Direction.LAUNCH, NAME, Tier.HEAVY,
             "Take whole blocks without a mask, exponentials to base two, and launch the combining kernel early, all "
             "in one step: each of them is worth a microsecond or less, which alone lies within the noise of a "
             "measurement.",
             "whole blocks, powers of two and an early combining kernel together", 0.4, 0.06, _together,
             basis="latency"),
        Move("powers-of-two", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Take exponentials to base two with the constant folded into the scale: a multiplication less per score.",
             "exp2 with the scale folded in", 0.1, 0.03, _body(two=True)),
        value_move(context, NAME, "num_stages", 3, what="loads run further ahead of the arithmetic", reach=0.3,
                   most=0.2, direction=Direction.PIPELINING),
        value_move(context, NAME, "num_stages", 4, what="loads run still further ahead", reach=0.2, most=0.08,
                   direction=Direction.PIPELINING),
        value_move(context, NAME, "BLOCK_N", 128, what="fewer rescalings, more loads in flight", reach=0.2, most=0.12),
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.1, most=0.06,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "num_warps", 2, what="less synchronisation in each reduction", reach=0.1, most=0.05,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK_N", 32, what="fewer registers, more programs per multiprocessor", reach=0.1,
                   most=0.04),
        value_move(context, NAME, "BLOCK_N", 256, what="still fewer rescalings. Risk: the block may not fit shared "
                   "memory", reach=0.1, most=0.03),
        table_move(context, NAME, "BLOCK_N", reach=0.1, most=0.05),
    ]
