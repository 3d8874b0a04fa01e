"""What host code may learn about the objects it holds: shapes, strides and dtypes, nothing about the process.

A plan is recorded over stand-ins for tensors. Host code that could tell them from real ones, or a patched function from
the original, could launch something else in production; the text of an object, or the name of its type, would tell.
"""

from __future__ import annotations

import ast

from harness.domain.vocabulary import Backend
from harness.evaluation.source.scopes import parameter_names
from harness.evaluation.source.steps import step, walk
from harness.evaluation.static.allowed import words
from harness.evaluation.static.arrays import Arrays, find_arrays
from harness.evaluation.static.candidate import Candidate
from harness.evaluation.static.launch_form import kernel_aliases

METHODS = words(
    "stride size dim numel element_size is_contiguous contiguous view reshape view_as unsqueeze squeeze transpose "
    "permute movedim t flatten unflatten expand expand_as narrow select new_empty new_zeros zero_ fill_ "
    "is_floating_point storage_offset index type append extend insert pop update setdefault clear remove add sort "
    "reverse get items keys values join")
"""Allowed attributes that are methods: without a call they are objects whose text names types and addresses."""
OPAQUE = words("torch.cuda.get_device_properties triton.runtime.driver.active.utils.get_device_properties "
               "triton.tools.tensor_descriptor.TensorDescriptor")
"""Calls that give an object whose attributes or items may be read, and nothing else."""
_PROPERTIES_TOO = frozenset({"type", "index"})  # of devices and dtypes, where they are plain values
_TEXT = ("str",)


def check_objects(candidate: Candidate) -> None:
    """Report methods that are not called, the type's name of a tensor, and the text of functions and arrays."""
    arrays = find_arrays(candidate)
    if candidate.found.backend is Backend.TRITON:
        _check_type_branches(candidate)
    for host, function in candidate.found.hosts.items():
        aliases, kernels = _aliases(candidate, function), kernel_aliases(candidate, function)
        for node in walk(function):
            if isinstance(node, ast.Attribute):
                _check_method(candidate, arrays, host, node)
            elif isinstance(node, ast.FormattedValue):
                _check_text(candidate, node.value, aliases, node.lineno)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _TEXT:
                for argument in node.args:
                    _check_text(candidate, argument, aliases, node.lineno)
            elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
                _check_text(candidate, node.right, aliases, node.lineno)
            elif isinstance(node, ast.Compare) and any(
                    _holds_function(candidate, side, aliases) for side in [node.left, *node.comparators]
                    if not (isinstance(side, ast.Name) and side.id in kernels)):
                candidate.report.add("attribute_not_allowed", "Comparing functions or property objects says where the "
                                     "code runs. Compare shapes and numbers.", node.lineno)


def _check_type_branches(candidate: Candidate) -> None:
    """A kernel body that asks for the class of a value can do one thing in the interpreter and another compiled."""
    for kernel in candidate.found.kernels.values():
        for node in walk(kernel):
            if isinstance(node, ast.Name) and node.id == "isinstance":
                candidate.report.add("type_branch", "This kernel body asks what class a value has, which differs "
                                     "between interpreter and compiler. Use a tl.constexpr flag.", node.lineno)


def _check_method(candidate: Candidate, arrays: Arrays, host: str, node: ast.Attribute) -> None:
    above = candidate.parent(node)
    called = isinstance(above, ast.Call) and above.func is node
    imported = candidate.found.dotted(node) is not None
    if node.attr == "type" and (called or arrays.may_hold(host, node.value)):
        if not (called and isinstance(above, ast.Call) and above.args):  # a conversion has its own sentence
            candidate.report.add("attribute_not_allowed", "`.type()` names the class of the object, which says where "
                                 "the code runs. Use `.dtype`.", node.lineno)
    elif (node.attr in METHODS and not called and not imported
          and (node.attr not in _PROPERTIES_TOO or arrays.may_hold(host, node.value))):
        candidate.report.add("attribute_not_allowed", f"`.{node.attr}` is a method. Call it where it stands: "
                             f"`.{node.attr}(...)`.", node.lineno)


def _check_text(candidate: Candidate, value: ast.expr, aliases: set[str], line: int) -> None:
    """Text may be made of numbers, names of buckets, shapes and dtypes; not of functions, nor of what a launch hands
    to a grid function."""
    for node in walk(value):
        if isinstance(node, ast.Call) and candidate.found.dotted(node.func) in OPAQUE and not isinstance(
                candidate.parent(node), ast.Attribute | ast.Subscript):
            candidate.report.add("attribute_not_allowed", "The text of a property object says where the code runs. "
                                 "Read the property that you need.", line)
        above = candidate.parent(node)
        if (isinstance(above, ast.Call) and above.func is node) or isinstance(above, ast.Attribute):
            continue
        if isinstance(node, ast.Name | ast.Attribute) and _is_function(candidate, node, aliases):
            candidate.report.add("attribute_not_allowed", f"The text of `{ast.unparse(node)}` shows a function or "
                                 "module, which says where the code runs. Make texts of shapes and numbers.", line)


def _aliases(candidate: Candidate, function: ast.FunctionDef) -> set[str]:
    """Local names, and targets of loops, that may stand for a function or module."""
    names = _handed_over(candidate, function)
    while True:
        before = len(names)
        for node in walk(function):
            if isinstance(node, ast.Assign):
                value, targets = node.value, node.targets
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                value, targets = node.value, [node.target]
            elif isinstance(node, ast.For | ast.comprehension):
                value, targets = node.iter, [node.target]
            else:
                continue
            if _holds_function(candidate, value, names):
                names |= {part.id for target in targets for part in walk(target) if isinstance(part, ast.Name)}
        if len(names) == before:
            return names


def _handed_over(candidate: Candidate, function: ast.FunctionDef) -> set[str]:
    """Parameters of lambdas, and of functions that are handed over instead of called: a launch calls a grid function
    with its arguments, tensors among them."""
    used = {node.id for host in candidate.found.hosts.values() for node in walk(host) if isinstance(node, ast.Name)
            and not (isinstance(above := candidate.parent(node), ast.Call) and above.func is node)}
    return {name for node in walk(function)
            if isinstance(node, ast.Lambda) or (isinstance(node, ast.FunctionDef) and node.name in used)
            for name in parameter_names(node.args)}


def _holds_function(candidate: Candidate, value: ast.expr, aliases: set[str]) -> bool:
    """Whether an expression is, or contains outside calls, a function."""
    todo: list[ast.expr] = [value]
    while todo:
        node = todo.pop()
        step()
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.Name | ast.Attribute)
                                            and _is_function(candidate, node, aliases)):
            return True
        if isinstance(node, ast.Call) and (candidate.found.dotted(node.func) in OPAQUE
                                           or _returns_one(candidate, node)):
            return True
        if isinstance(node, ast.IfExp | ast.BoolOp | ast.Tuple | ast.List | ast.Dict | ast.Set | ast.Starred
                      | ast.NamedExpr):
            todo.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr))
    return False


def _returns_one(candidate: Candidate, call: ast.Call) -> bool:
    """Whether a helper of the file gives back the result of an opaque call."""
    helper = candidate.found.hosts.get(call.func.id) if isinstance(call.func, ast.Name) else None
    return helper is not None and any(
        isinstance(node, ast.Call) and candidate.found.dotted(node.func) in OPAQUE
        and not isinstance(candidate.parent(node), ast.Attribute | ast.Subscript) for node in walk(helper))


def _is_function(candidate: Candidate, node: ast.Name | ast.Attribute, aliases: set[str]) -> bool:
    found = candidate.found
    if isinstance(node, ast.Name):
        if node.id in aliases or node.id in found.hosts or node.id in found.kernels:
            return True
        constant = found.constants.get(node.id)
        if constant is not None:
            return _constant_holds(candidate, node.id, constant)
    path = found.dotted(node)
    return path is not None and not _is_plain(path)


def _constant_holds(candidate: Candidate, name: str, value: ast.expr) -> bool:
    """Whether a constant of the file holds a function; looked up once, and so taken where it holds itself."""
    if name not in candidate.functional:
        candidate.functional[name] = True
        candidate.functional[name] = _holds_function(candidate, value, set())
    return candidate.functional[name]


def _is_plain(path: str) -> bool:
    """Whether a dotted path is a number or a dtype rather than a function, class or module."""
    root, _, last = path.rpartition(".")
    return (root == "math" and last in ("e", "pi", "tau", "inf", "nan")) or (
        root in ("torch", "numpy", "triton.language") and last.rstrip("0123456789_") in (
            "float", "int", "uint", "bfloat", "bool", "half", "double", "long", "float8_e4m3fn", "float8_e", "inf",
            "nan", "pi", "e"))


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))
