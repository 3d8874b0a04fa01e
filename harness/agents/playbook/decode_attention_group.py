"""Decode attention with the query heads of a group sharing every key and value: the heavy rewrite."""

from __future__ import annotations

from harness.agents.playbook import edit
from harness.agents.playbook.numba_common import RELAXED

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
    kernel = KERNEL.replace("{name}", name).replace("{options}", RELAXED)
    changed = edit.replace_function(source, name, kernel)
    changed = edit.replace_function(changed, "run", RUN.replace("{name}", name))
    return edit.insert_before(changed, name, EXP)
