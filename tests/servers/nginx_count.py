"""nginx in front of a server: forwards everything and logs each request, so that tests count independently of us."""

import json
import os
import signal

from .base import Server, answers, free_ports, program

CONFIGURATION = """\
{head}
worker_processes 1;
events {{ worker_connections 4000; }}
http {{
	log_format requests escape=json '{{"time":$msec,"seconds":$request_time,"method":"$request_method",'
		'"uri":"$request_uri","status":$status,"read_bytes":$request_length,"head_bytes":$head_bytes,'
		'"content_length":"$http_content_length","target":"$http_x_amz_target","agent":"$http_user_agent",'
		'"if_none_match":"$http_if_none_match","if_match":"$http_if_match","connection":$connection}}';
	access_log {folder}/requests.jsonl requests;
	client_max_body_size 0;
	client_body_buffer_size 256k;
	{paths}
	large_client_header_buffers 8 32k;
	ignore_invalid_headers off;
	merge_slashes off;
	keepalive_requests 1000000;
	lua_package_path "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;";
	upstream server {{ server {upstream}; keepalive 64; keepalive_timeout 20s; }}
	server {{
		listen 127.0.0.1:{port} backlog=1024;
		listen 127.0.0.1:{tls_port} ssl backlog=1024;
		ssl_certificate {cert};
		ssl_certificate_key {key};
		set_by_lua_block $head_bytes {{ return #ngx.req.raw_header() }}
		location / {{
			proxy_pass http://server;
			proxy_http_version 1.1;
			proxy_set_header Host $http_host;
			proxy_set_header Connection "";
			proxy_request_buffering off;
			proxy_buffering off;
			proxy_next_upstream off;
			proxy_read_timeout 600s;
			proxy_send_timeout 600s;
		}}
	}}
}}
"""


def nginx_head(folder):
    """The lines every nginx of ours starts with."""
    modules = "/usr/lib/nginx/modules"
    return f"""\
load_module {modules}/ndk_http_module.so;
load_module {modules}/ngx_http_lua_module.so;
daemon off;
{'user root;' if os.geteuid() == 0 else ''}
pid {folder}/nginx.pid;
error_log {folder}/error.log warn;
worker_rlimit_nofile 20000;"""


def nginx_paths(folder):
    """Paths in the block http, where each nginx of ours keeps bodies."""
    return " ".join(f"{what}_temp_path {folder}/tmp;" for what in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))


def start_nginx(server, text):
    """Starts nginx on this configuration; its master ends the workers when our process dies."""
    (server.folder / "tmp").mkdir(exist_ok=True)
    (server.folder / "nginx.conf").write_text(text)
    argv = [program("nginx"), "-e", server.folder / "error.log", "-c", server.folder / "nginx.conf", "-p", server.folder]
    server.spawn("nginx", argv, death=signal.SIGTERM)
    server.wait_until(lambda: answers(server.endpoint), 20)


class NginxCount(Server):
    """upstream: the Server (S3 or DynamoDB) to forward to. Clients use this one's endpoint with the same credentials."""

    def __init__(self, upstream, folder=None):
        super().__init__(folder)
        self.upstream = upstream
        self.access_key, self.secret_key, self.region = upstream.access_key, upstream.secret_key, upstream.region

    def launch(self):
        port, tls_port = free_ports(2)
        cert, key = self.make_certificate()
        self.endpoint, self.tls_endpoint = f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"
        start_nginx(
            self,
            CONFIGURATION.format(
                head=nginx_head(self.folder),
                paths=nginx_paths(self.folder),
                folder=self.folder,
                upstream=self.upstream.endpoint.removeprefix("http://"),
                port=port,
                tls_port=tls_port,
                cert=cert,
                key=key,
            ),
        )
        self.requests()

    def requests(self):
        """The requests that ended since the last call, in order, as dictionaries.

        body_bytes is what was really received of the body, also of a request that was cut off (status 499 or 400).
        """
        requests = [json.loads(line) for line in self.new_log_lines(self.folder / "requests.jsonl")]
        for request in requests:
            request["body_bytes"] = max(0, request["read_bytes"] - int(request["head_bytes"] or 0))
        return requests
