"""Ceph RADOS Gateway: monitor, one OSD and the gateway as plain processes."""

import random
import re
import signal
import uuid
from pathlib import Path

from .base import Server, answers, free_ports

KMS_KEY = "key-of-tests"  # the id of the one key that aws:kms knows

CONFIGURATION = """\
[global]
fsid = {fsid}
mon host = v2:127.0.0.1:{mon_port}
public addr = 127.0.0.1
cluster addr = 127.0.0.1
ms bind ipv6 = false
ms bind msgr1 = false
ms bind port min = {osd_ports}
ms bind port max = {osd_ports_end}
auth cluster required = none
auth service required = none
auth client required = none
run dir = {folder}/run
admin socket = {folder}/run/$name.asok
pid file = {folder}/run/$name.pid
log file = {folder}/log/$name.log
crash dir = {folder}/run
err to stderr = true
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon max pg per osd = 2000
mon allow pool size one = true
mon warn on pool no redundancy = false
osd enable op tracker = false
throttler perf counter = false
debug default = 0/0
{quiet}
[mon]
mon data = {folder}/mon
mon cluster log file = {folder}/log/cluster.log
mon initial members = a
mon data avail warn = 1
mon data avail crit = 1
paxos propose interval = 0.02
paxos min wait = 0.01
[osd]
osd data = {folder}/osd
osd objectstore = {store}
osd class update on start = false
osd class dir = {classes}
memstore device bytes = {capacity}
bluestore block size = {capacity}
osd memory target = 939524096
[client.rgw.a]
ms mon client mode = crc
rgw data = {folder}/rgw
rgw frontends = beast endpoint=127.0.0.1:{port} ssl_endpoint=127.0.0.1:{tls_port} \
ssl_certificate={folder}/tls.pem request_timeout_ms={idle_ms} tcp_nodelay=1
rgw dns name = s3.localhost
rgw crypt require ssl = false
rgw crypt s3 kms backend = testing
rgw crypt s3 kms encryption keys = {KMS_KEY}=c2VjcmV0IGZvciB0ZXN0cywgYW5kIGZvciB0aGVtLi4=
rgw max concurrent requests = {max_requests}
rgw thread pool size = 64
rgw num rados handles = 1
rgw override bucket index max shards = 1
rgw dynamic resharding = false
rgw run sync thread = false
rgw enable usage log = false
rgw enable ops log = false
rgw enable lc threads = false
rgw enable quota threads = false
rgw gc obj min wait = 1
rgw gc processor period = 2
debug rgw = {log_level}
debug rgw access = {log_level}
"""

ACCESS = re.compile(r'beast: .*?\] "(?P<method>[A-Z]+) (?P<uri>\S+) HTTP/[\d.]+" (?P<status>\d+) (?P<bytes>\d+) ')

SUBSYSTEMS = "ms osd objecter rados bluestore bdev bluefs rocksdb monc auth mon paxos throttle finisher context tp asok"


class Rgw(Server):
    """store: memstore (fast, in memory) or bluestore (on disk). max_requests: above it 503 SlowDown.
    idle_ms: when an idle connection is closed. access_log: keep a line of each request, see requests()."""

    stop_signal = signal.SIGKILL  # asked politely it takes seconds; what it holds is thrown away

    def __init__(self, folder=None, store="memstore", max_requests=1024, idle_ms=65000, capacity=16 << 30, access_log=False):
        super().__init__(folder)
        self.options = {"store": store, "max_requests": max_requests, "idle_ms": idle_ms, "capacity": capacity}
        self.options["log_level"] = "1/1" if access_log else "0/0"

    def launch(self):
        for name in ("mon", "osd", "log", "run", "rgw"):
            (self.folder / name).mkdir(exist_ok=True)
        cert, key = self.make_certificate()
        (self.folder / "tls.pem").write_text(cert.read_text() + key.read_text())
        port, tls_port, mon_port = free_ports(3)
        osd_ports = random.randrange(20000, 31000)
        fsid = uuid.uuid4()
        self.conf = self.folder / "ceph.conf"
        self.conf.write_text(
            CONFIGURATION.format(
                **self.options,
                KMS_KEY=KMS_KEY,
                fsid=fsid,
                folder=self.folder,
                port=port,
                tls_port=tls_port,
                mon_port=mon_port,
                osd_ports=osd_ports,
                osd_ports_end=osd_ports + 400,
                classes=next(Path("/usr/lib").glob("*/rados-classes"), ""),  # newer packages have a relative default
                quiet="\n".join(f"debug {name} = 0/0" for name in SUBSYSTEMS.split()),
            )
        )
        self.endpoint, self.tls_endpoint = f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"
        self.start_cluster(fsid, mon_port)
        self.create_user()
        self.start_gateway()

    def start_cluster(self, fsid, mon_port):
        conf, monmap = self.conf, self.folder / "monmap"
        self.run(
            ["monmaptool", "--create", "--clobber", "--fsid", fsid, "--addv", "a", f"[v2:127.0.0.1:{mon_port}]", monmap]
        )
        self.run(["ceph-mon", "-c", conf, "--mkfs", "-i", "a", "--monmap", monmap])
        self.spawn("mon", ["ceph-mon", "-c", conf, "-i", "a", "-f"])
        osd = uuid.uuid4()
        self.run(["ceph", "-c", conf, "--connect-timeout", "50", "osd", "new", osd, "0"])
        self.run(["ceph-osd", "-c", conf, "-i", "0", "--mkfs", "--osd-uuid", osd])
        self.spawn("osd", ["ceph-osd", "-c", conf, "-i", "0", "-f"])

    def create_user(self):
        """Before the gateway starts, since it reads the zone and its storage classes then."""
        admin = ["radosgw-admin", "-c", self.conf, "-n", "client.rgw.a"]
        self.add_user("s3once", self.access_key)
        for storage_class in ("STANDARD_IA", "GLACIER"):
            place = ["--placement-id", "default-placement", "--storage-class", storage_class]
            self.run(admin + ["zonegroup", "placement", "add", "--rgw-zonegroup", "default"] + place)
            pool = ["--data-pool", "default.rgw.buckets.data"]
            self.run(admin + ["zone", "placement", "add", "--rgw-zone", "default"] + place + pool)

    def add_user(self, name, access_key, tenant=None):
        """One more user with the same secret; buckets of a tenant are others than those of the same name elsewhere."""
        self.run(
            ["radosgw-admin", "-c", self.conf, "-n", "client.rgw.a", "user", "create", f"--uid={name}"]
            + [f"--display-name={name}", "--max-buckets=100000"]
            + [f"--access-key={access_key}", f"--secret={self.secret_key}"]
            + ([f"--tenant={tenant}"] if tenant else [])
        )

    def start_gateway(self):
        """Starts the gateway (again): the data is in the OSD and outlives it."""
        self.spawn("rgw", ["radosgw", "-c", self.conf, "-n", "client.rgw.a", "-f"])
        self.wait_until(lambda: answers(self.endpoint))

    def kill_gateway(self):
        """kill -9 of the gateway alone: an outage until start_gateway()."""
        gateway = self.processes.pop("rgw")
        gateway.send_signal(signal.SIGKILL)
        gateway.wait()

    def requests(self):
        """The requests answered since the last call, with access_log: dictionaries of method, uri, status, bytes."""
        found = map(ACCESS.search, self.new_log_lines(self.folder / "log" / "client.rgw.a.log"))
        numbers = ("status", "bytes")
        return [
            {name: int(value) if name in numbers else value for name, value in line.groupdict().items()}
            for line in found
            if line
        ]
