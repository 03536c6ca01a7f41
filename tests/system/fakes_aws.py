"""AWS's S3 as the program would find it behind a proxy. A fake: it is HTTPS_PROXY and the names of AWS in one, answers what a
region answers about another region's bucket, and hands everything else to a real server."""

import http.client
import http.server
import ssl
import subprocess
import threading
from urllib.parse import urlsplit

ENDPOINTS = ["s3.us-east-1.amazonaws.com", "s3.eu-west-1.amazonaws.com", "s3.localhost"]
NAMES = ",".join(f"DNS:{name},DNS:*.{name}" for name in ENDPOINTS)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_CONNECT(self):
        self.send_response(200)
        self.end_headers()
        self.server.tunnels.append(self.path)
        self.connection = self.server.tls.wrap_socket(self.connection, server_side=True)
        self.setup()  # on the wrapped connection: setup() takes self.request
        self.close_connection = False

    def setup(self):
        self.request = getattr(self, "connection", self.request)
        super().setup()

    def answer(self, status, headers, body=b""):
        self.send_response_only(status)
        for name, value in headers:
            self.send_header(name, value)
        if not any(name.lower() == "content-length" for name, _ in headers):
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_request(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        host = self.headers["Host"]
        self.server.seen.append((self.command, host))
        if self.server.home not in host:
            return self.answer(*self.server.redirect(self.command))
        upstream = http.client.HTTPConnection(urlsplit(self.server.upstream).netloc, timeout=60)
        upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() != "expect":
                upstream.putheader(name, value)
        upstream.endheaders(body)
        reply = upstream.getresponse()
        unwanted = ("connection", "transfer-encoding")
        headers = [(name, value) for name, value in reply.getheaders() if name.lower() not in unwanted]
        self.answer(reply.status, headers, reply.read())
        upstream.close()

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_request


class Aws(http.server.ThreadingHTTPServer):
    """with Aws(folder, s3.endpoint, "eu-west-1", redirect) as aws: the bucket's region is eu-west-1; aws.url is the proxy's,
    aws.ca the certificate to trust, aws.seen the requests as (method, host). redirect(method): what the others answer."""

    daemon_threads = True

    def __init__(self, folder, upstream, home, redirect):
        super().__init__(("127.0.0.1", 0), Handler)
        self.upstream, self.home, self.redirect = upstream, home, redirect
        self.seen, self.tunnels = [], []
        self.ca, key = folder / "aws.pem", folder / "aws.key"
        argv = ["openssl", "req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=fake", "-newkey", "ec"]
        argv += ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-addext", f"subjectAltName={NAMES}", "-keyout", key, "-out", self.ca]
        subprocess.run(argv, check=True, capture_output=True)
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(self.ca, key)
        self.url = f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
