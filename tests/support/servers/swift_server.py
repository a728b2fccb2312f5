# SPDX-License-Identifier: Apache-2.0
"""OpenStack Swift with its S3 interface in one process: proxy, account, container and object server, one device.

swift_server.py DIRECTORY DESCRIPTOR: serves on the listening socket DESCRIPTOR, keeps everything in DIRECTORY and writes
the file DIRECTORY/ready when it serves. Access and secret keys: test:owner
and owner-key; test:other and other-key, a user without rights. A page of a listing has 50 objects.
"""
import array
import os
import pathlib
import socket
import sys

import eventlet

eventlet.monkey_patch()

import swift.common.utils  # noqa: E402
import swift.common.wsgi  # noqa: E402
from eventlet import wsgi  # noqa: E402
from swift.common.ring import RingData  # noqa: E402
from swift.common.utils import NullLogger  # noqa: E402

DIRECTORY = pathlib.Path(sys.argv[1])

PROXY = """
[DEFAULT]
swift_dir = {directory}
[pipeline:main]
pipeline = catch_errors cache s3api tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
conn_timeout = 10
node_timeout = 30
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
storage_domain = localhost
max_bucket_listing = 50
[filter:tempauth]
use = egg:swift#tempauth
user_test_owner = owner-key .admin
user_test_other = other-key
"""
SERVER = """
[DEFAULT]
swift_dir = {directory}
devices = {directory}/devices
mount_check = false
bind_port = {port}
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
"""


def listen():
    listener = eventlet.listen(("127.0.0.1", 0), backlog=128)
    return listener, listener.getsockname()[1]


def serve(listener, config):
    app = swift.common.wsgi.loadapp(str(config))
    protocol = swift.common.wsgi.SwiftHttpProtocol
    eventlet.spawn(wsgi.server, listener, app, log=NullLogger(), log_output=False, protocol=protocol)


def main():
    (DIRECTORY / "devices/d1").mkdir(parents=True)
    swift_conf = DIRECTORY / "swift.conf"
    swift_conf.write_text("[swift-hash]\nswift_hash_path_prefix = p\nswift_hash_path_suffix = s\n")
    swift.common.utils.SWIFT_CONF_FILE = str(swift_conf)
    swift.common.utils.HASH_PATH_PREFIX, swift.common.utils.HASH_PATH_SUFFIX = b"p", b"s"
    for kind in ("account", "container", "object"):
        listener, port = listen()
        device = {"id": 0, "zone": 1, "region": 1, "ip": "127.0.0.1", "port": port, "device": "d1", "weight": 1.0,
                  "replication_ip": "127.0.0.1", "replication_port": port}
        RingData([array.array("H", [0])], [device], 32).save(str(DIRECTORY / f"{kind}.ring.gz"))
        config = DIRECTORY / f"{kind}.conf"
        config.write_text(SERVER.format(directory=DIRECTORY, port=port, kind=kind))
        serve(listener, config)
    config = DIRECTORY / "proxy.conf"
    config.write_text(PROXY.format(directory=DIRECTORY))
    serve(socket.socket(fileno=int(sys.argv[2])), config)
    eventlet.sleep(0)
    (DIRECTORY / "ready").write_text(str(os.getpid()))
    while True:
        eventlet.sleep(3600)


main()
