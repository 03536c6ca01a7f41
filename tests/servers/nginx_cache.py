"""nginx as a proxy that caches what S3 answers to GET and HEAD, as no proxy should do with requests that are signed."""

from .base import Server, free_ports
from .nginx_count import nginx_head, nginx_paths, start_nginx

# By what the proxy knows a request again, and what it makes of one that says no-cache and of a reply from its cache.
MANNERS = {
    "obeys": ("$uri", "proxy_cache_bypass $http_cache_control;"),
    "tells": ("$uri", "add_header X-Cache-Status $upstream_cache_status always;"),
    "tells by RFC 9211": ("$uri", 'add_header Cache-Status "nginx;$cache_status" always;'),
    "tells the age": ("$uri", "add_header Age $cache_age always;"),
    "goes by the URL": ("$request_uri", ""),
    "ignores the query": ("$uri", ""),
}

CONFIGURATION = """\
{head}
worker_processes 1;
events {{ worker_connections 400; }}
http {{
	access_log off;
	client_max_body_size 0;
	{paths}
	proxy_cache_path {folder}/cache keys_zone=cache:1m;
	map $upstream_cache_status $cache_status {{ HIT hit; default fwd=uri-miss; }}
	map $upstream_cache_status $cache_age {{ HIT 60; default 0; }}
	server {{
		listen 127.0.0.1:{port};
		location / {{
			proxy_pass {upstream};
			proxy_http_version 1.1;
			proxy_set_header Host $http_host;
			proxy_set_header Connection "";
			proxy_cache cache;
			proxy_cache_methods GET HEAD;
			proxy_cache_convert_head off;
			proxy_cache_key $request_method{uri};
			proxy_cache_valid any 1h;
			{manner}
		}}
	}}
}}
"""


class NginxCache(Server):
    """upstream: the server of S3. manner: a key of MANNERS."""

    def __init__(self, upstream, manner, folder=None):
        super().__init__(folder)
        self.upstream, self.manner = upstream, manner
        self.access_key, self.secret_key, self.region = upstream.access_key, upstream.secret_key, upstream.region

    def launch(self):
        (port,) = free_ports(1)
        self.endpoint = f"http://127.0.0.1:{port}"
        text = CONFIGURATION.format(
            head=nginx_head(self.folder),
            paths=nginx_paths(self.folder),
            folder=self.folder,
            upstream=self.upstream.endpoint,
            port=port,
            uri=MANNERS[self.manner][0],
            manner=MANNERS[self.manner][1],
        )
        start_nginx(self, text)
