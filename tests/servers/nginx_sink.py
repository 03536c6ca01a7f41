"""nginx as an S3 that stores nothing: takes bodies, echoes checksums, answers multipart. For measuring the client.

It answers as if everything had arrived: with the checksum it was sent, and with the Content-MD5 it was sent as the etag.
"""

import urllib.request

from .base import Server, free_ports
from .nginx_count import nginx_head, nginx_paths, start_nginx

REPLY = '<?xml version="1.0" encoding="UTF-8"?>\n<{0} xmlns="http://s3.amazonaws.com/doc/2006-03-01/">{1}</{0}>'

CREATED = REPLY.format("InitiateMultipartUploadResult", "<Bucket>b</Bucket><Key>k</Key><UploadId>%s</UploadId>")
COMPLETED = REPLY.format(
    "CompleteMultipartUploadResult", '<Bucket>b</Bucket><Key>k</Key><ETag>"%s-1"</ETag>%s'
)
LISTED = REPLY.format("ListBucketResult", "<Name>b</Name><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated>")

LUA = """\
local method, args = ngx.req.get_method(), ngx.req.get_uri_args()
local etag = "9e107d9d372bb6826bd81d3542a419d6"
local counts = ngx.shared.counts
if ngx.var.uri == "/counts" then
	local lines = {}
	for _, name in ipairs(counts:get_keys(0)) do lines[#lines + 1] = name .. " " .. counts:get(name) end
	return ngx.say(table.concat(lines, " "))
end
counts:incr(method, 1, 0)
if ngx.var.ssl_session_reused == "r" and ngx.var.connection_requests == "1" then counts:incr("resumed", 1, 0) end
local function reply(status, body)
	ngx.status = status
	ngx.header["x-amz-request-id"] = ngx.var.request_id
	ngx.header["Content-Length"] = #body
	if #body > 0 then ngx.header["Content-Type"] = "application/xml" end
	ngx.print(body)
	return ngx.exit(ngx.HTTP_OK)
end
local function checksums()
	local found = {}
	for name, value in pairs(ngx.req.get_headers()) do
		if name:sub(1, 15) == "x-amz-checksum-" then found[name] = value end
	end
	return found
end
-- Doctor stores objects to find out what is done with conditions: of several with the same key, one is stored.
if ngx.var.http_if_none_match and ngx.var.uri:find("/.s3once-doctor", 1, true) then
	if not ngx.shared.probes:add(ngx.var.uri, true) then return reply(412, "") end
end
-- Else nginx itself would answer them, with 304 for If-None-Match: * since the reply has an etag.
ngx.req.clear_header("If-None-Match")
ngx.req.clear_header("If-Match")
if method == "PUT" then
	local sent = checksums()
	if MD5 then
		ngx.req.read_body()
		etag = ngx.md5(ngx.req.get_body_data() or "")
	else
		local socket = ngx.req.socket()
		local got, last = 0, nil
		while socket do
			local piece = socket:receiveany(262144)
			if not piece then break end
			got, last = got + #piece, piece
		end
		local name, value = (last or ""):match("(x%-amz%-checksum%-%w+):(%S+)%s*$")
		if name then sent[name] = value end
		if got < tonumber(ngx.var.http_content_length or 0) then return ngx.exit(ngx.HTTP_CLOSE) end
	end
	counts:incr("stored", 1, 0)
	local md5 = ngx.decode_base64(ngx.var.http_content_md5 or "")
	if md5 and #md5 == 16 then etag = md5:gsub(".", function(c) return ("%02x"):format(c:byte()) end) end
	for name, value in pairs(sent) do ngx.header[name] = value end
	ngx.header["ETag"] = '"' .. etag .. '"'
	return reply(200, "")
end
ngx.req.read_body()
if method == "POST" and args.uploads then return reply(200, ([[CREATED]]):format(ngx.var.request_id)) end
if method == "POST" and args.uploadId then
	local elements = ""
	for name, value in pairs(checksums()) do
		local element = name:sub(16):upper()
		if name ~= "x-amz-checksum-type" then
			elements = elements .. ("<Checksum%s>%s</Checksum%s>"):format(element, value, element)
		end
	end
	return reply(200, ([[COMPLETED]]):format(etag, elements))
end
if method == "DELETE" then return reply(204, "") end
if method == "HEAD" and not ngx.var.uri:find("^/[^/]+/.") then return reply(200, "") end -- a bucket
if HOLDS_EMPTY and ngx.var.uri:find("^/[^/]+/.") then
	ngx.header["ETag"] = '"d41d8cd98f00b204e9800998ecf8427e"'
	return reply(200, "")
end
if method == "GET" then return reply(200, [[LISTED]]) end
return reply(404, "")
"""

CONFIGURATION = """\
{head}
worker_processes {workers};
events {{ worker_connections 8000; multi_accept on; }}
http {{
	access_log off;
	keepalive_requests 100000000;
	keepalive_timeout 600s;
	tcp_nodelay on;
	client_max_body_size 0;
	client_body_buffer_size 64m;
	{paths}
	large_client_header_buffers 4 16k;
	lua_shared_dict counts 64k;
	lua_shared_dict probes 64k;
	merge_slashes off;
	lua_package_path "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua;;";
	server {{
		listen 127.0.0.1:{port} backlog=1024 reuseport;
		listen 127.0.0.1:{tls_port} ssl backlog=1024 reuseport;
		ssl_certificate {cert};
		ssl_certificate_key {key};
		location / {{ content_by_lua_file {folder}/sink.lua; }}
	}}
}}
"""


class NginxSink(Server):
    """md5: the etag is the body's MD5 (bodies up to 64 MiB); else the body is dropped as it comes and the etag is constant.

    holds_empty: HEAD and GET find an empty object under every key; else they find none.
    """

    def __init__(self, folder=None, md5=False, workers=1, holds_empty=False):
        super().__init__(folder)
        self.md5, self.workers, self.holds_empty = md5, workers, holds_empty

    def launch(self):
        port, tls_port = free_ports(2)
        cert, key = self.make_certificate()
        self.endpoint, self.tls_endpoint = f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"
        lua = LUA.replace("CREATED", CREATED).replace("COMPLETED", COMPLETED).replace("LISTED", LISTED)
        lua = lua.replace("HOLDS_EMPTY", "true" if self.holds_empty else "false")
        (self.folder / "sink.lua").write_text(lua.replace("MD5", "true" if self.md5 else "false"))
        start_nginx(
            self,
            CONFIGURATION.format(
                head=nginx_head(self.folder),
                paths=nginx_paths(self.folder),
                folder=self.folder,
                workers=self.workers,
                port=port,
                tls_port=tls_port,
                cert=cert,
                key=key,
            ),
        )

    def counts(self):
        """How many requests came so far, by method."""
        return {name: count for name, count in self.all_counts().items() if name.isupper()}

    def stored(self):
        """How many bodies of PUTs came whole so far."""
        return self.all_counts().get("stored", 0)

    def resumed(self):
        """How many TLS connections so far began with the session of an earlier one."""
        return self.all_counts().get("resumed", 0)

    def all_counts(self):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(self.endpoint + "/counts", timeout=10) as reply:
            words = reply.read().decode().split()
        return {method: int(count) for method, count in zip(words[::2], words[1::2])}
