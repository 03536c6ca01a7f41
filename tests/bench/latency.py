"""Files a second where each request takes as long as at a real service, and what the servers took of this host's CPUs.

s3once runs over DynamoDB marks twice: with dynoxide, and with a fake that answers writes of marks as a fresh table would and
stores nothing. dynoxide works on one core at a time and spends more on a mark than s3once does on a file: its own time
to a file is the most files a second that any client could have there. What the fake shows is s3once's own limit.
"""

import shutil
import statistics
import sys
from dataclasses import dataclass

from tests.servers.base import Server, free_ports
from tests.servers.dynoxide import Dynoxide
from tests.servers.nginx_count import nginx_head, nginx_paths, start_nginx
from tests.servers.nginx_sink import NginxSink

from .clients import BUCKET, S3once, S5cmd, Setting
from .measure import cpu_seconds, run
from .trees import CASES, MIB
from .uploads import warm

LATE = """\
{head}
worker_processes 1;
events {{ worker_connections 9000; }}
http {{
	access_log off;
	keepalive_requests 100000000;
	keepalive_timeout 600s;
	client_max_body_size 0;
	client_body_buffer_size 4m;
	{paths}
	lua_package_path "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;";
	upstream server {{ server {upstream}; keepalive 4000; }}
	server {{
		listen 127.0.0.1:{port} backlog=4096;
		location / {{
			access_by_lua_block {{
				ngx.sleep({seconds})
				{answer}
			}}
			proxy_http_version 1.1;
			proxy_set_header Connection "";
			proxy_set_header Host $http_host;
			proxy_request_buffering off;
			proxy_pass http://server;
		}}
	}}
}}
"""

# Every write of a mark succeeds and is forgotten; the rest (table, settings, session, probe, queries) goes on to dynoxide.
FAKE = """
local writes = {BatchExecuteStatement = true, PutItem = true, UpdateItem = true}
if not writes[(ngx.var.http_x_amz_target or ""):match("%.(%a+)$")] then return end
ngx.req.read_body()
local body = ngx.req.get_body_data() or ""
if not body:find('/BUCKET#%d+"') then return end
local reply = "{}"
local _, statements = body:gsub('"Statement"', "")
if statements > 0 then
	reply = '{"Responses":[' .. ('{"TableName":"fake"},'):rep(statements):sub(1, -2) .. "]}"
end
ngx.header["Content-Type"] = "application/x-amz-json-1.0"
ngx.header["Content-Length"] = #reply
ngx.print(reply)
return ngx.exit(ngx.HTTP_OK)
"""


class Late(Server):
    """nginx before the server `upstream`: each request is answered, by it or by the Lua of `answer`, so much later."""

    def __init__(self, upstream, ms, answer=""):
        super().__init__()
        self.upstream, self.ms, self.answer = upstream, ms, answer

    def launch(self):
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        upstream = self.upstream.endpoint.removeprefix("http://")
        start_nginx(
            self,
            LATE.format(
                head=nginx_head(self.folder),
                paths=nginx_paths(self.folder),
                upstream=upstream,
                port=port,
                seconds=self.ms / 1000,
                answer=self.answer.replace("BUCKET", BUCKET),
            ),
        )


@dataclass
class Run:
    """name: in the table. servers: name → Server, those that work for the client."""

    name: str
    client: object
    setting: Setting
    servers: dict

    def once(self, tree):
        """The cost, and what each server used of the CPUs, in seconds."""
        argv, environment = self.client.prepare(self.setting, tree)
        before = {name: cpu_seconds(server) for name, server in self.servers.items()}
        cost = run(argv, environment, self.setting.folder / "log")
        shutil.rmtree(self.setting.folder / "marks", ignore_errors=True)
        return cost, {name: cpu_seconds(server) - before[name] for name, server in self.servers.items()}


COLUMNS = ["S3, DynamoDB answer in", "client", "files/s, median", "to s5cmd's", "CPU a file", "peak memory"]
COLUMNS += ["the servers' CPU a file", "most files/s that dynoxide can do"]


def rows(runs, results, files, latency):
    rates = {name: statistics.median(files / cost.wall for cost, _ in done) for name, done in results.items()}
    for each in runs:
        costs = [cost for cost, _ in results[each.name]]
        used = {name: min(cpu[name] for _, cpu in results[each.name]) / files * 1e6 for name in each.servers}
        most = f"{1e6 / used['dynoxide']:,.0f}" if used.get("dynoxide", 0) > 50 else "–"
        ratio = f"{rates[each.name] / rates['s5cmd cp']:.2f}" if "s5cmd cp" in rates else "–"
        yield (
            f"| {latency} | {each.name} | {rates[each.name]:,.0f} | {ratio} "
            f"| {min(cost.cpu for cost in costs) / files * 1e6:,.0f} µs | {max(cost.memory for cost in costs) / MIB:.0f} MiB "
            f"| {', '.join(f'{name} {cpu:,.0f}' for name, cpu in used.items())} µs | {most} |"
        )


def measure(options, tree, case, s3_ms, dynamodb_ms):
    program = options.build / "src" / "cli" / "s3once"
    with NginxSink() as sink, Dynoxide() as table, Late(sink, s3_ms) as s3, Late(table, dynamodb_ms) as marks, Late(
        table, dynamodb_ms, FAKE
    ) as fake:
        s3_servers = {"sink": sink, "its delay": s3}
        real = Setting(s3, marks, "http", options.dir)
        runs = [
            Run("s3once, DynamoDB marks in dynoxide", S3once(program, "dynamodb"), real,
                {**s3_servers, "dynoxide": table, "its delay (DynamoDB)": marks}),
            Run("s3once, DynamoDB marks in the fake", S3once(program, "dynamodb"), Setting(s3, fake, "http", options.dir),
                {**s3_servers, "dynoxide": table, "fake": fake}),
            Run("s3once, SQLite marks", S3once(program, "sqlite"), real, s3_servers),
        ]
        if shutil.which("s5cmd"):
            runs.append(Run("s5cmd cp", S5cmd(None), real, s3_servers))
        results = {each.name: [] for each in runs}
        for _ in range(options.runs):
            for each in runs:
                print(f"{s3_ms:g} and {dynamodb_ms:g} ms, {each.name} …", file=sys.stderr, flush=True)
                results[each.name].append(each.once(tree))
        for row in rows(runs, results, case.files, f"{s3_ms:g}, {dynamodb_ms:g} ms"):
            print(row, flush=True)


def main(options):
    print(f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|", flush=True)
    (options.dir / "home").mkdir(exist_ok=True)
    case = CASES["small"]
    tree = case.make(options.dir)
    warm(tree)
    for pair in options.latencies.split(","):
        s3_ms, _, dynamodb_ms = pair.partition("/")
        measure(options, tree, case, float(s3_ms), float(dynamodb_ms))
