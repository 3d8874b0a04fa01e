"""Certificates: one that nobody trusts is not waited for, one of an authority in the settings is taken."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from http.server import ThreadingHTTPServer

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from harness.agents.llm.ports import TransportError
from tests.harness.llm.wire.asking import Asker
from tests.harness.llm.wire.strange_server import HELLO, Handler, Strange


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Files with a certificate of 127.0.0.1 that signed itself, and its key."""
    folder = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "strange server")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(key, hashes.SHA256()))
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()))
    return folder / "cert.pem", folder / "key.pem"


@pytest.fixture
def server(pair):
    strange = Strange([HELLO])
    listening = ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"strange": strange}))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*pair)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    strange.url = f"https://127.0.0.1:{listening.server_port}/v1"
    threading.Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield strange
    listening.shutdown()
    listening.server_close()


def test_a_certificate_that_nobody_trusts_gets_no_key_and_no_second_try(server):
    with pytest.raises(TransportError) as caught:
        Asker(server.url, key=True).ask()
    assert (caught.value.kind, caught.value.retries) == ("refused", 0)
    assert "ca_file" in caught.value.text
    assert server.seen == []


def test_an_authority_of_the_settings_is_trusted(server, pair):
    assert Asker(server.url, ca_file=str(pair[0])).ask().text == "hello"


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_file_that_holds_no_authority_is_named(server, tmp_path, content):
    path = tmp_path / "ca.pem"
    if content is not None:
        path.write_text(content, "utf-8")
    with pytest.raises(TransportError) as caught:
        Asker(server.url, ca_file=str(path)).ask()
    assert caught.value.kind == "refused" and str(path) in caught.value.text
