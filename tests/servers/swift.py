"""OpenStack Swift with s3api: account, container, object and proxy server on one device."""

import os
import pwd

from .base import Server, answers, free_ports, program

RUN = """
import sys
from swift.common.utils import set_swift_dir
from swift.common.wsgi import run_wsgi
set_swift_dir(sys.argv[1])
sys.exit(run_wsgi(sys.argv[2], sys.argv[3]))
"""

RINGS = """
import sys
from swift.common.ring import RingBuilder
for name, port in zip(("account", "container", "object"), sys.argv[2:]):
    builder = RingBuilder(4, 1, 0)
    builder.add_dev({"id": 0, "region": 1, "zone": 1, "weight": 100.0, "device": "d1", "meta": "",
                     "ip": "127.0.0.1", "port": int(port), "replication_ip": "127.0.0.1", "replication_port": int(port)})
    builder.rebalance()
    builder.get_ring().save(f"{sys.argv[1]}/{name}.ring.gz")
"""

COMMON = """\
[swift-hash]
swift_hash_path_suffix = s3once
swift_hash_path_prefix = s3once
[storage-policy:0]
name = Policy-0
default = yes
[swift-constraints]
max_header_size = 8192
"""

DEFAULTS = """\
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {port}
workers = 0
user = {user}
swift_dir = {folder}
devices = {folder}/node
mount_check = false
disable_fallocate = true
fallocate_reserve = 0
log_address = /nonexistent
log_level = ERROR
"""

STORAGE = """\
[pipeline:main]
pipeline = {name}-server
[app:{name}-server]
use = egg:swift#{app}
allow_no_owner = true
"""

PIPELINE = (
    "catch_errors healthcheck proxy_logging memcache s3api tempauth copy slo dlo versioned_writes symlink proxy_logging"
)

FILTERS = {
    "memcache": "memcache_servers = 127.0.0.1:{memcached}",
    "s3api": "location = us-east-1\nstorage_domain = s3.localhost\nallow_multipart_uploads = true\n"
    "max_upload_part_num = 10000",
    # A second account, whose buckets have the same names and are others.
    "tempauth": "user_{account} = {secret_key} .admin\nuser_other_uploader = {secret_key} .admin",
    "slo": "max_manifest_segments = 10000\nmax_manifest_size = 8388608",
    "versioned_writes": "allow_object_versioning = true",
}


def proxy_configuration(values):
    text = f"[pipeline:main]\npipeline = {PIPELINE} proxy-server\n"
    text += "[app:proxy-server]\nuse = egg:swift#proxy\naccount_autocreate = true\nallow_account_management = true\n"
    for name in dict.fromkeys(PIPELINE.split()):
        text += f"[filter:{name}]\nuse = egg:swift#{name}\n{FILTERS.get(name, '').format(**values)}\n"
    return text


class Swift(Server):
    """memory: keep objects in the object server's memory (needs no extended attributes, no fsync)."""

    access_key = "s3once:uploader"

    def __init__(self, folder=None, memory=True, tls=False):
        super().__init__(folder)
        self.memory, self.tls = memory, tls

    def launch(self):
        (self.folder / "node" / "d1").mkdir(parents=True, exist_ok=True)
        ports = dict(zip(("account", "container", "object", "proxy", "memcached"), free_ports(5)))
        user = pwd.getpwuid(os.getuid()).pw_name
        self.storage_ports = [ports[name] for name in ("account", "container", "object")]
        self.run(["/usr/bin/python3", "-c", RINGS, self.folder, *self.storage_ports])
        (self.folder / "swift.conf").write_text(COMMON)
        for name in ("account", "container", "object", "proxy"):
            text = DEFAULTS.format(port=ports[name], user=user, folder=self.folder)
            if name == "proxy":
                if self.tls:
                    text += "cert_file = {}\nkey_file = {}\n".format(*self.make_certificate())
                account = self.access_key.replace(":", "_")
                text += proxy_configuration({**ports, "account": account, "secret_key": self.secret_key})
            else:
                text += STORAGE.format(name=name, app="mem_object" if name == "object" and self.memory else name)
            (self.folder / f"{name}.conf").write_text(text)
        argv = [program("memcached"), "-l", "127.0.0.1", "-p", ports["memcached"], "-m", 64, "-I", "4m", "-u", user]
        self.spawn("memcached", argv)
        for name in ("account", "container", "object", "proxy"):
            self.spawn(name, ["/usr/bin/python3", "-c", RUN, self.folder, self.folder / f"{name}.conf", f"{name}-server"])
        self.endpoint = f"{'https' if self.tls else 'http'}://127.0.0.1:{ports['proxy']}"
        self.tls_endpoint = self.endpoint if self.tls else None
        self.wait_until(self.is_ready)

    def is_ready(self):
        storage = all(answers(f"http://127.0.0.1:{port}") for port in self.storage_ports)
        return storage and answers(self.endpoint)
