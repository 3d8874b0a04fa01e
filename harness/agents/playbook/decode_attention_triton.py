"""Strategies for decode_attention on Triton: launch values, the body's forms, a cache split over programs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from harness.agents.playbook import decode_attention_kernels as forms
from harness.agents.playbook import decode_attention_launches as launches
from harness.agents.playbook import edit
from harness.agents.playbook.arithmetic import multiprocessors, over_shapes
from harness.agents.playbook.move import Move
from harness.agents.playbook.values import value_move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

NAME = forms.NAME
RESIDENT = 2
"""Programs per multiprocessor, about, from which on memory is busy."""
BUCKETS = ("short", "medium", "long", "longer", "huge", "giant")
LEVEL = {"PROGRAMS": 64, "SPAN": 512}
"""Values of the bucket whose batches hold lengths of all sizes: parts of 512 positions, however many."""
STAGES = {"short": 3, "medium": 2, "long": 6, "longer": 4, "huge": 3, "giant": 3}
ALONE = ("long", "longer")
"""Buckets whose programs have a multiprocessor to themselves each: a batch of 16 is then one program per sequence and
cache head, and needs no combining kernel."""


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
            return source if form.two != changed.two else None
        source = edit.replace_function(source, forms.PART, forms.part(changed))
        return edit.replace_function(source, forms.COMBINE_NAME, forms.combine(changed))
    return transform


def _split(context: AgentContext) -> str | None:
    source = context.incumbent.source
    form = forms.form_of(source)
    if form is None or forms.is_split(source):
        return None
    source = edit.replace_function(source, "run", launches.fixed())
    source = edit.insert_before(edit.insert_before(source, "run", forms.part(form)), "run", forms.combine(form))
    return edit.set_params(source, {"SPLITS": 16}).replace("import triton\n", "import torch\nimport triton\n", 1)


def _chosen(context: AgentContext) -> str | None:
    source = context.incumbent.source
    if not forms.is_split(source) or "PROGRAMS" in edit.params(source):
        return None
    source = edit.replace_function(source, "run", launches.chosen())
    tables = {key: {name: LEVEL[key] if name == "huge" else value for name in BUCKETS}
              for key, value in (("SPAN", 64), ("PROGRAMS", RESIDENT))}
    return edit.set_params(source, {"SPLITS": 128, **tables})


def _by_length(context: AgentContext) -> str | None:
    source = context.incumbent.source
    programs = edit.params(source).get("PROGRAMS")
    if not isinstance(programs, dict):
        return None
    tables = {"num_stages": STAGES,
              "PROGRAMS": {name: 1 if name in ALONE else value for name, value in programs.items()}}
    return None if edit.params(source) == edit.params(source) | tables else edit.set_params(source, tables)


def _early(context: AgentContext) -> str | None:
    changed = _body(dependent=True)(context) if forms.is_split(context.incumbent.source) else None
    return None if changed is None else launches.launched(changed)


def _together(context: AgentContext) -> str | None:
    source = context.incumbent.source
    form = forms.form_of(source)
    if form is None or not forms.is_split(source) or form != forms.Form():
        return None
    changed = _body(two=True, peeled=True, dependent=True)(context)
    return None if changed is None else launches.launched(changed)


def _one_program(source: str) -> bool:
    """Whether a sequence and cache head is one program's whatever its length."""
    return not forms.is_split(source)


def _one_depth(source: str) -> bool:
    """Whether nothing chooses launch values by length yet."""
    return "PROGRAMS" not in edit.params(source)


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
             "run, all at once, and leave sequences whole where a batch is that many already: 16 parts are too few for "
             f"one long sequence, and 64 sequences need none. Batches of mixed lengths get parts of {LEVEL['SPAN']} "
             "positions, which level them out.",
             "parts chosen by length and batch, whole sequences where there are enough", 0.5, 0.3, _chosen,
             evidence="hardware.multiprocessors", basis="occupancy"),
        # Judged on an H200: three stages everywhere +7.4 %. Timed there beyond it: 16 sequences of 4,096 whole with six
        # stages 68.7 us, split 70.3; 64 of 8,192 with four 477 us, with three 546: 396 run at once.
        Move("values-by-length", Direction.PIPELINING, NAME, Tier.LIGHT,
             "Choose stages and programs per multiprocessor by length: caches of 2,049 to 8,192 positions get one "
             "program with six or four stages, as many bytes on their way as with two of three, half as many parts to "
             "combine and a batch of 16 whole; longer ones two programs of three stages; short ones two stages, so "
             "that a batch of 64 is one wave.",
             "stages and programs per multiprocessor as tables over lengths", 0.5, 0.12, _by_length,
             evidence="tunables", basis="latency"),
        # Timed on an H200 at one sequence of 8,192: 18.0 us before, 17.8 with narrow programs alone, 16.8 with both;
        # of 131,072: 127.2 before, 126.3 with both. Launching the wide programs early was judged: -0.4 %.
        Move("shorter-way", Direction.LAUNCH, NAME, Tier.HEAVY,
             "Make all that follows the last byte short: launch the combining kernel while parts are still computed, "
             f"in programs of one warp and {launches.COLUMNS} columns, which ask for all parts that there are at once; "
             "let parts take whole blocks without a mask, and exponentials to base two. Each is worth a microsecond or "
             "less, which alone lies within the noise of a measurement.",
             "narrow combining programs launched early, whole blocks and powers of two together", 0.4, 0.06, _together,
             basis="latency"),
        Move("early-combine", Direction.LAUNCH, NAME, Tier.HEAVY,
             f"Launch the combining kernel while parts are still computed, in programs of one warp and "
             f"{launches.COLUMNS} columns, and let it wait for the parts itself: its launch is then over when the last "
             "part is. That counts where a call takes tens of microseconds.",
             "narrow combining programs launched early, waiting for the parts", 0.3, 0.04, _early, basis="latency"),
        # Judged on an H200: +0.7 %. Timed there at one sequence of 8,192: 17.8 instead of 18.2 us.
        Move("whole-blocks", Direction.VECTORISATION, NAME, Tier.MEDIUM,
             "Let parts take whole blocks without a mask over positions and advance one pair of addresses, and mask "
             "the last block alone: fewer instructions between loads.", "unmasked whole blocks in parts, a masked rest",
             0.1, 0.015, _body(peeled=True), basis="latency"),
        Move("powers-of-two", Direction.PRECISION, NAME, Tier.MEDIUM,
             "Take exponentials to base two with the constant folded into the scale: a multiplication less per score.",
             "exp2 with the scale folded in", 0.1, 0.01, _body(two=True)),
        # Timed on an H200 without a split, at two stages: 1.2 to 1.4 times as fast with 128 positions but for 64
        # sequences, and with three stages then 1.8 to 1.9 times. Split: -19 % with 128, +7.4 % with three stages.
        value_move(context, NAME, "BLOCK_N", 128, what="more loads in flight, fewer rescalings. Few programs wait for "
                   "memory in turn", reach=0.3, most=0.25, applies=_one_program),
        value_move(context, NAME, "num_stages", 3, what="loads run further ahead of the arithmetic", reach=0.3,
                   most=0.2, direction=Direction.PIPELINING, applies=_one_depth),
        # Judged on an H200 on parts: -6.5 %; without a split and with 128 positions: up to +9 %.
        value_move(context, NAME, "num_warps", 8, what="more loads in flight per program", reach=0.1, most=0.05,
                   direction=Direction.OCCUPANCY),
        value_move(context, NAME, "BLOCK_N", 32, what="fewer registers, a shorter wait for the first block", reach=0.1,
                   most=0.02),
    ]
