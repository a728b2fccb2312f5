# SPDX-License-Identifier: Apache-2.0
"""Uses kiln in one process with packages that contain their own libcrypto, zlib or TLS, imported before and after them.

    wheel_coexistence.py              runs itself once for each order
    wheel_coexistence.py NAME…        imports in this order, and uses each package
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import subprocess
import sys
import tempfile
from typing import Any

PACKAGES = ("kiln", "cryptography", "grpc")


def use_kiln() -> str:
    """Computes a SHA-256 with the embedded libcrypto, and compiles."""
    import kiln

    source = 'extern "C" __global__ void scale(float* x) { *x *= 2; }'
    unit = kiln.Unit.cuda("scale.cu", source, entries=["scale"])
    with tempfile.TemporaryDirectory() as folder:
        session = kiln.Session(settings={"cache.dir": folder})
        assert len(session.artifact(unit, "sm_80", timeout=60.0)) > 1000
        del session
    return unit.key


def make_certificate() -> tuple[bytes, bytes]:
    """Creates a key and a certificate for localhost with cryptography."""
    import datetime

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    return (
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ),
        certificate.public_bytes(serialization.Encoding.PEM),
    )


def use_cryptography() -> None:
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    digest = hashes.Hash(hashes.SHA256())
    digest.update(b"kiln")
    assert digest.finalize() == hashlib.sha256(b"kiln").digest()
    cipher = AESGCM(bytes(32))
    assert cipher.decrypt(bytes(12), cipher.encrypt(bytes(12), b"kiln", None), None) == b"kiln"


def use_grpc() -> None:
    """Makes a call over TLS to a server in this process."""
    from concurrent import futures

    import grpc

    class Echo(grpc.GenericRpcHandler):
        def service(self, handler_call_details: Any) -> Any:
            return grpc.unary_unary_rpc_method_handler(lambda request, context: request)

    key, certificate = make_certificate()
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=1), handlers=[Echo()])
    port = server.add_secure_port("localhost:0", grpc.ssl_server_credentials([(key, certificate)]))
    server.start()
    with grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(certificate)) as channel:
        assert channel.unary_unary("/echo/echo")(b"kiln", timeout=30) == b"kiln"
    server.stop(None).wait(10)


USES = {"kiln": use_kiln, "cryptography": use_cryptography, "grpc": use_grpc}


def in_order(names: list[str]) -> None:
    for name in names:
        importlib.import_module(name)
    # The first package is also used last, when all packages are initialized.
    for name in [*names, *reversed(names)]:
        key = USES[name]()
        if key:
            print(f"key {key}")


def main() -> int:
    if len(sys.argv) > 1:
        in_order(sys.argv[1:])
        return 0
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        print(f"wheel_coexistence did not run: {', '.join(missing)} is not installed here")
        return 77
    keys = set()
    for order in (PACKAGES, PACKAGES[::-1], ("cryptography", "kiln", "grpc")):
        ran = subprocess.run([sys.executable, __file__, *order], capture_output=True, text=True, timeout=120, check=False)
        if ran.returncode:
            print(f"{', '.join(order)}: exit code {ran.returncode}\n{ran.stdout}{ran.stderr}")
            return 1
        keys |= set(ran.stdout.split("\n")) - {""}
        print(f"{', '.join(order)}: all packages work")
    if len(keys) != 1:
        print(f"kiln's digest depends on the import order: {sorted(keys)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
