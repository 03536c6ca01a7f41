"""AWS signature version 4, as a server checks it and as a proxy that changed a request needs it."""

import datetime
import hashlib
import hmac
import re

AUTHORIZATION = re.compile(r"AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]{64})$")
SKEW_SECONDS = 900


def signature(request, secret_key, signed_headers, scope, payload):
    """request: http1.Request. The query is taken as it stands, sorted; the path as it stands."""
    query = "&".join(sorted(word if "=" in word else word + "=" for word in request.query.split("&") if word))
    lines = "".join(f"{name}:{' '.join(request.headers.get(name, '').split())}\n" for name in signed_headers)
    canonical = "\n".join([request.method, request.path, query, lines, ";".join(signed_headers), payload])
    date, region, service, _ = scope.split("/")
    digest = hashlib.sha256(canonical.encode("latin-1")).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{request.headers['x-amz-date']}\n{scope}\n{digest}"
    key = f"AWS4{secret_key}".encode()
    for word in (date, region, service, "aws4_request", text):
        key = hmac.digest(key, word.encode(), "sha256")
    return key.hex()


def sign(request, access_key, secret_key, region, service, payload=None):
    """Signs (again): adds what is missing, replaces the authorization."""
    now = datetime.datetime.now(datetime.timezone.utc)
    request.headers["x-amz-date"] = now.strftime("%Y%m%dT%H%M%SZ")
    payload = payload or request.headers.get("x-amz-content-sha256") or hashlib.sha256(b"").hexdigest()
    request.headers["x-amz-content-sha256"] = payload
    signed = sorted(name for name in request.headers if name.startswith("x-amz-") or name in ("host", "content-md5"))
    scope = f"{now:%Y%m%d}/{region}/{service}/aws4_request"
    value = signature(request, secret_key, signed, scope, payload)
    request.headers["authorization"] = (
        f"AWS4-HMAC-SHA256 Credential={access_key}/{scope}, SignedHeaders={';'.join(signed)}, Signature={value}"
    )


def fault_of(request, body, access_key, secret_key):
    """The fault of a request's signature, in DynamoDB's words, or None."""
    found = AUTHORIZATION.match(request.headers.get("authorization", ""))
    if not found:
        return "Missing or malformed Authorization header."
    credential, names, value = found.groups()
    key, _, scope = credential.partition("/")
    if key != access_key:
        return "The security token included in the request is invalid."
    try:
        sent = datetime.datetime.strptime(request.headers.get("x-amz-date", ""), "%Y%m%dT%H%M%SZ")
    except ValueError:
        return "Date must be in ISO-8601 'basic format'."
    now = datetime.datetime.utcnow()
    if abs((now - sent).total_seconds()) > SKEW_SECONDS:
        when = "expired" if sent < now else "not yet current"
        order = "earlier" if sent < now else "later"
        return f"Signature {when}: {sent:%Y%m%dT%H%M%SZ} is now {order} than {now:%Y%m%dT%H%M%SZ} (15 min.)"
    signed = names.split(";")
    if "host" not in signed or len(scope.split("/")) != 4:
        return "Credential should be scoped to a valid date, region and service, and 'Host' must be signed."
    if signature(request, secret_key, signed, scope, hashlib.sha256(body).hexdigest()) != value:
        return "The request signature we calculated does not match the signature you provided."
    return None
