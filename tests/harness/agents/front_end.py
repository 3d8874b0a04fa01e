"""A program: calls ``run`` of many Triton files under the recorder and compiles what they launch as far as TTIR.

It is the way of the evaluator's plans but for two things: the files are the harness's own, so that no sandbox is
needed, and compilation ends with the front end, so that hundreds of kernel functions take seconds. Every kernel
function is besides compiled with its integer arguments specialised as no call here may have them: all of them 1, each
of them alone 1, none, and all multiples of 16.

A document on standard input, ``{"target": ..., "files": [{"source": ..., "calls": [{"arguments", "attributes"}]}]}``;
on standard output a list per file of ``{"function", "how", "error"}``, and the number of compilations.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

# An integer argument that may be specialised: what Triton's signature calls it.
INTEGERS = ("i32", "i64")


class Reached(Exception):
    """The front end has ended; nothing after it runs."""


class FrontEnd:
    """Compiles launches instead of making them; every kernel function as specialised once, by its text."""

    def __init__(self, target: Any) -> None:
        self._target = target
        self._errors: dict[tuple[str, ...], str] = {}
        self._varied: dict[str, list[dict[str, str]]] = {}
        self.faults: list[dict[str, str]] = []

    @property
    def compiled(self) -> int:
        """How many compilations there were."""
        return len(self._errors)

    def launch(self, function: Any, signature: dict[str, str], constants: dict[Any, Any], options: Any,
               attributes: dict[Any, Any]) -> None:
        """Compile what a call launches and, for a text that was not met before, its other specialisations."""
        function.starting_line_number = 0  # a text is the same wherever it stands in its file
        found = self._compile("as called", function, signature, constants, attributes, options)
        text = function.cache_key
        if text not in self._varied:
            self._varied[text] = [fault for how, *specialised in _variants(function, signature, constants, attributes)
                                  for fault in self._compile(how, function, *specialised, options)]
        self.faults += [fault for fault in (*found, *self._varied[text]) if fault not in self.faults]

    def _compile(self, how: str, function: Any, signature: dict[str, str], constants: dict[Any, Any],
                 attributes: dict[Any, Any], options: Any) -> list[dict[str, str]]:
        """No fault or one. What divides an argument and what acts behind the front end makes no other compilation."""
        from harness.backends.triton.recorder.ircapture import OPTIONS

        early = {name: value for name, value in options.__dict__.items() if name not in OPTIONS}
        key = (function.cache_key, how if "16" in how else "", str(signature), str(constants), str(early))
        if key not in self._errors:
            self._errors[key] = self._error(function, signature, constants, attributes, options)
        error = self._errors[key]
        return [{"function": function.fn.__name__, "how": how, "error": error}] if error else []

    def _error(self, function: Any, signature: dict[str, str], constants: dict[Any, Any], attributes: dict[Any, Any],
               options: Any) -> str:
        from triton.compiler.compiler import ASTSource
        from triton.compiler.compiler import compile as triton_compile

        try:
            triton_compile(ASTSource(function, signature, constants, attributes), target=self._target,
                           options=options.__dict__)
        except Reached:
            return ""
        except Exception as error:  # noqa: BLE001 - whatever the compiler raises is the finding
            return f"{type(error).__name__}: {error}"
        raise RuntimeError("the compiler went past the front end")


def _variants(function: Any, signature: dict[str, str], constants: dict[Any, Any],
              attributes: dict[Any, Any]) -> Iterator[tuple[str, dict[str, str], dict[Any, Any], dict[Any, Any]]]:
    """The specialisations of a launch's integer arguments, pointers and ``constexpr`` parameters as they were."""
    places = {parameter.name: (parameter.num,) for parameter in function.params if not parameter.is_constexpr}
    integers = {name: path for name, path in places.items()
                if signature[name] in INTEGERS or (signature[name] == "constexpr" and constants.get(path) == 1)}
    usual = {name: signature[name] if signature[name] in INTEGERS else "i32" for name in integers}
    bare = {path: value for path, value in constants.items() if path not in integers.values()}
    plain = {path: value for path, value in attributes.items() if path not in integers.values()}
    sixteen = {path: [["tt.divisibility", 16]] for path in integers.values()}
    yield "no argument special", {**signature, **usual}, bare, plain
    yield "all arguments multiples of 16", {**signature, **usual}, bare, {**plain, **sixteen}
    for ones in ([*integers], *([name] for name in integers)) if integers else ():
        fixed = {**bare, **{places[name]: 1 for name in ones}}
        yield f"{', '.join(ones)} 1", {**signature, **usual, **dict.fromkeys(ones, "constexpr")}, fixed, plain


def install(target: Any) -> FrontEnd:
    """Patch Triton in this process: launches go to the front end that is returned, and nothing goes past it."""
    import triton
    from triton import knobs
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.compiler import CUDABackend
    from triton.runtime import cache
    from triton.runtime.jit import JITFunction

    from harness.backends.triton.recorder import host
    from harness.backends.triton.recorder.driver import RecorderDriver

    make_ttir = CUDABackend.make_ttir

    def stop(mod: Any, metadata: dict[str, Any], opt: Any, capability: int) -> None:
        make_ttir(mod, metadata, opt, capability)
        raise Reached

    def compile_only(self: Any, key: Any, signature: Any, device: Any, constants: Any, options: Any, attributes: Any,
                     warmup: bool) -> None:
        front.launch(self, signature, constants, options, attributes)

    cache.triton_key = lambda: triton.__version__
    knobs.cache.dir = tempfile.mkdtemp(prefix="cache")
    CUDABackend.make_ttir = staticmethod(stop)
    JITFunction._do_compile = compile_only
    triton.runtime.driver.set_active(RecorderDriver(target))
    host.install(target)
    front = FrontEnd(GPUTarget("cuda", target.capability, target.warp))
    return front


def main() -> None:
    """Read, call, compile, write."""
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    from harness.backends.triton.candidate import import_candidate
    from harness.backends.triton.recorder.record import record
    from harness.backends.triton.targets import find_target

    asked = json.load(sys.stdin)
    target, number, answers = find_target(asked["target"]), 0, []
    front = install(target)
    for file in asked["files"]:
        module, front.faults = import_candidate(file["source"]), []
        for call in file["calls"]:
            plan = record(module.run, target, call["arguments"], call["attributes"], first=number)
            number += 2
            front.faults += [{"function": "run", "how": refusal["code"], "error": refusal["text"]}
                             for refusal in plan["refusals"] if refusal["code"] != "nothing_launched"]
        answers.append(front.faults)
    json.dump({"faults": answers, "compiled": front.compiled}, sys.stdout)


if __name__ == "__main__":
    main()
