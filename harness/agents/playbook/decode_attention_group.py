"""Decode attention with the query heads of a group sharing every key and value: the heavy rewrite, and what may follow
it inside its own body."""

from __future__ import annotations

from collections.abc import Callable

from harness.agents.playbook import edit
from harness.agents.playbook import numba_common as common
from harness.agents.playbook.move import Move
from harness.agents.protocol import AgentContext
from harness.domain.vocabulary import Direction, Tier

KERNEL = '''\
@numba.njit({options})
def {name}(q, k_cache, v_cache, seq_lens, out, scores, scale):
    batch, q_heads, dim = q.shape
    kv_heads = k_cache.shape[2]
    group = q_heads // kv_heads
    quads = group - group % 4
    for item in range(batch):
        length = seq_lens[item]
        fours = length - length % 4
        for source in range(kv_heads):
            first = source * group
            for position in range(length):
                key = k_cache[item, position, source]
                for member in range(0, quads, 4):
                    q0 = q[item, first + member]
                    q1 = q[item, first + member + 1]
                    q2 = q[item, first + member + 2]
                    q3 = q[item, first + member + 3]
                    d0 = np.float32(0.0)
                    d1 = np.float32(0.0)
                    d2 = np.float32(0.0)
                    d3 = np.float32(0.0)
                    for column in range(dim):
                        d0 += q0[column] * key[column]
                        d1 += q1[column] * key[column]
                        d2 += q2[column] * key[column]
                        d3 += q3[column] * key[column]
                    scores[member, position] = d0 * scale
                    scores[member + 1, position] = d1 * scale
                    scores[member + 2, position] = d2 * scale
                    scores[member + 3, position] = d3 * scale
                for member in range(quads, group):
                    query = q[item, first + member]
                    dot = np.float32(0.0)
                    for column in range(dim):
                        dot += query[column] * key[column]
                    scores[member, position] = dot * scale
            for member in range(group):
                row = scores[member]
                top = np.float32(-np.inf)
                for position in range(length):
                    top = max(top, row[position])
                total = np.float32(0.0)
                for position in range(length):
                    share = _exp(row[position] - top)
                    row[position] = share
                    total += share
                for position in range(length):
                    row[position] /= total
                for column in range(dim):
                    out[item, first + member, column] = 0.0
            for position in range(0, fours, 4):
                v0 = v_cache[item, position, source]
                v1 = v_cache[item, position + 1, source]
                v2 = v_cache[item, position + 2, source]
                v3 = v_cache[item, position + 3, source]
                for member in range(group):
                    s0 = scores[member, position]
                    s1 = scores[member, position + 1]
                    s2 = scores[member, position + 2]
                    s3 = scores[member, position + 3]
                    target = out[item, first + member]
                    for column in range(dim):
                        target[column] += s0 * v0[column] + s1 * v1[column] + s2 * v2[column] + s3 * v3[column]
            for position in range(fours, length):
                value = v_cache[item, position, source]
                for member in range(group):
                    share = scores[member, position]
                    target = out[item, first + member]
                    for column in range(dim):
                        target[column] += share * value[column]
'''
EXP = '''\
@numba.njit(fastmath={"contract"})
def _exp(x):
    shifted = max(x, np.float32(-87.0)) * np.float32(1.44269504) + np.float32(12582912.0)
    power = shifted - np.float32(12582912.0)
    rest = x - power * np.float32(0.693359375) + power * np.float32(2.12194440e-4)
    value = np.float32(1.9875691500e-4)
    value = value * rest + np.float32(1.3981999507e-3)
    value = value * rest + np.float32(8.3334519073e-3)
    value = value * rest + np.float32(4.1665795894e-2)
    value = value * rest + np.float32(1.6666665459e-1)
    value = value * rest + np.float32(5.0000001201e-1)
    value = value * rest * rest + rest + np.float32(1.0)
    scale = np.int32(np.int32(np.float32(shifted).view(np.int32) + np.int32(127)) << np.int32(23)).view(np.float32)
    return np.float32(0.0) if x < np.float32(-87.0) else value * scale
'''
RUN = '''\
def run(q, k_cache, v_cache, seq_lens, out, *, scale):
    scores = np.empty((q.shape[1] // k_cache.shape[2], k_cache.shape[1]), np.float32)
    {name}(q, k_cache, v_cache, seq_lens, out, scores, np.float32(scale))
'''


def grouped(source: str, name: str) -> str:
    """``source`` with its kernel and ``run`` replaced by the grouped form, with a vectorisable exponential beside."""
    kernel = KERNEL.replace("{name}", name).replace("{options}", common.RELAXED)
    changed = edit.replace_function(source, name, kernel)
    changed = edit.replace_function(changed, "run", RUN.replace("{name}", name))
    return edit.insert_before(changed, name, EXP)


def _edit(name: str, old: str, new: str) -> Callable[[AgentContext], str | None]:
    """A transform that replaces ``old`` by ``new`` in the grouped body."""
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        body = edit.body_text(source, name)
        if not is_grouped(source, name) or old not in body:
            return None
        return edit.replace_body(source, name, body.replace(old, new))
    return transform


def is_grouped(source: str, name: str) -> bool:
    """Whether the kernel has the grouped form."""
    return "member" in edit.body_text(source, name)


def _eight(name: str) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        body = edit.body_text(source, name)
        if not is_grouped(source, name) or "v4" in body:
            return None
        more = range(4, 8)
        loads = "".join(f"                v{i} = v_cache[item, position + {i}, source]\n" for i in more)
        shares = "".join(f"                    s{i} = scores[member, position + {i}]\n" for i in more)
        terms = " + ".join(f"s{i} * v{i}[column]" for i in more)
        line = "                v3 = v_cache[item, position + 3, source]\n"
        share = "                    s3 = scores[member, position + 3]\n"
        sweep = "s0 * v0[column] + s1 * v1[column] + s2 * v2[column] + s3 * v3[column]"
        body = body.replace("fours = length - length % 4", "eights = length - length % 8")
        body = body.replace("range(0, fours, 4)", "range(0, eights, 8)")
        body = body.replace("range(fours, length)", "range(eights, length)")
        body = body.replace(line, line + loads).replace(share, share + shares)
        body = body.replace(sweep, sweep + f"\n                        target[column] += {terms}")
        return edit.replace_body(source, name, body)
    return transform


def _threads(name: str) -> Callable[[AgentContext], str | None]:
    def transform(context: AgentContext) -> str | None:
        source = context.incumbent.source
        body = edit.body_text(source, name)
        if not is_grouped(source, name) or "prange" in body:
            return None
        own = "    for item in numba.prange(batch):\n        scores = np.empty((group, k_cache.shape[1]), np.float32)\n"
        changed = edit.replace_body(source, name, body.replace("    for item in range(batch):\n", own))
        return edit.set_decorator(changed, name, common.njit(*common.parallel_options(source, name)))
    return transform


def group_moves(context: AgentContext, name: str) -> list[Move]:
    """Strategies that apply once the kernel has the grouped form."""
    return [
        Move("group-one-reciprocal", Direction.PRECISION, name, Tier.MEDIUM,
             "Divide once per head and multiply every probability by the reciprocal. Risk: a sequence of length 0 has "
             "a sum of 0.", "one reciprocal per head",
             0.1, 0.05, _edit(name, "                for position in range(length):\n"
                                    "                    row[position] /= total\n",
                              "                inverse = np.float32(1.0) / total\n"
                              "                for position in range(length):\n"
                              "                    row[position] *= inverse\n")),
        Move("group-eight-rows", Direction.PIPELINING, name, Tier.MEDIUM,
             "Take eight value rows per sweep instead of four. Risk: more live registers than the machine has.",
             "eight value rows per sweep", 0.1, 0.06, _eight(name)),
        Move("group-threads", Direction.OCCUPANCY, name, Tier.MEDIUM, common.thread_text(context),
             "sequences spread over threads with prange", 1.0, common.thread_gain(context), _threads(name),
             evidence="hardware.threads"),
    ]
