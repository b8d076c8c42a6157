"""The language server, spoken to as an editor does: JSON-RPC on its standard input and output."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
URI = "file:///kernel.mlir"
SECONDS = 60

RIGHT = """\
!row = !lowlp.tile<32xf16, spatial(32)>
lowlp.kernel @add(%p: !lowlp.ptr<f16>) attributes {grid = affine_map<() -> (1)>, num_threads = 32 : i64} {
  %view = lowlp.view_global %p shape [32] : !lowlp.ptr<f16> -> !lowlp.global<32xf16>
  %zero = arith.constant 0 : index
  %tile = lowlp.load_global %view[%zero] : !lowlp.global<32xf16> -> !row
  lowlp.store_global %tile, %view[%zero] : !row, !lowlp.global<32xf16>
  lowlp.return
}
"""
# Refused by the parser of a type, and by the verifier of an op.
WRONG_TYPE = RIGHT.replace("-> !row", "-> !lowlp.tile<32xf16, spatial(16)>")
WRONG_OP = RIGHT.replace("store_global %tile, %view[%zero]", "store_global %tile, %view[%zero, %zero]")


class Server:
    """A running server. Messages that come before the one that is waited for are passed over."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.requests = 0

    def send(self, method: str, params: dict[str, Any], **more: Any) -> None:
        body = json.dumps({"jsonrpc": "2.0", "method": method, "params": params, **more}).encode()
        assert self.process.stdin
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self.process.stdin.flush()

    def receive(self) -> dict[str, Any]:
        assert self.process.stdout
        length = 0
        while (line := self.process.stdout.readline().strip()) != b"":
            name, _, value = line.partition(b": ")
            if name == b"Content-Length":
                length = int(value)
        assert length, "the server ended"
        message = json.loads(self.process.stdout.read(length))
        assert isinstance(message, dict)
        return message

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.requests += 1
        self.send(method, params, id=self.requests)
        while (message := self.receive()).get("id") != self.requests:
            pass
        return message["result"]

    def diagnostics(self) -> list[dict[str, Any]]:
        while (message := self.receive()).get("method") != "textDocument/publishDiagnostics":
            pass
        found = message["params"]["diagnostics"]
        assert isinstance(found, list)
        return found

    def open(self, text: str) -> list[dict[str, Any]]:
        document = {"uri": URI, "languageId": "mlir", "version": 1, "text": text}
        self.send("textDocument/didOpen", {"textDocument": document})
        return self.diagnostics()


def end_of(word: str) -> dict[str, int]:
    """The place of the last letter of `word` in the program, counted from zero."""
    line, column = next((n, text.index(word)) for n, text in enumerate(RIGHT.splitlines()) if word in text)
    return {"line": line, "character": column + len(word) - 1}


@pytest.fixture(params=["program", "package"])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """The program of the build tree, and the same server out of the Python package."""
    program = [str(ROOT / "build" / "bin" / "lowlp-lsp-server")]
    package = [sys.executable, "-c", "import sys; from lowlp.cli.tools import lsp_server; sys.exit(lsp_server())"]
    command = program if request.param == "program" else package
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    running = Server(process)
    capabilities = running.ask("initialize", {"processId": None, "rootUri": None, "capabilities": {}})["capabilities"]
    assert capabilities["hoverProvider"]
    assert capabilities["definitionProvider"]
    running.send("initialized", {})
    yield running
    running.ask("shutdown", {})
    running.send("exit", {})
    assert process.wait(SECONDS) == 0


def test_a_right_program_has_no_diagnostics(server: Server) -> None:
    assert server.open(RIGHT) == []


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (WRONG_TYPE, "lowlp.load_global", "shape is 32, but the layout's shape is 16"),
        (WRONG_OP, "lowlp.store_global", "'lowlp.store_global' op"),
    ],
)
def test_a_wrong_program_is_marked_where_it_is_wrong(server: Server, text: str, line: str, message: str) -> None:
    (found,) = server.open(text)
    assert found["range"]["start"]["line"] == end_of(line)["line"]
    assert message in found["message"]


def test_a_change_is_seen(server: Server) -> None:
    assert len(server.open(WRONG_OP)) == 1
    document = {"uri": URI, "version": 2}
    server.send("textDocument/didChange", {"textDocument": document, "contentChanges": [{"text": RIGHT}]})
    assert server.diagnostics() == []


def test_hover_tells_of_an_op_and_its_types(server: Server) -> None:
    server.open(RIGHT)
    place = {"textDocument": {"uri": URI}, "position": end_of("lowlp.load_global")}
    text = server.ask("textDocument/hover", place)["contents"]["value"]
    assert '"lowlp.load_global"' in text
    assert "!lowlp.tile<32xf16, spatial(32)>" in text


def test_definition_of_a_value_is_found(server: Server) -> None:
    server.open(RIGHT)
    use = end_of("lowlp.store_global %tile")
    (found,) = server.ask("textDocument/definition", {"textDocument": {"uri": URI}, "position": use})
    assert found["range"]["start"]["line"] == end_of("%tile =")["line"]
