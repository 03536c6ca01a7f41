"""A fake of STS: AssumeRole, whose signature it checks, and AssumeRoleWithWebIdentity, after the STS API Reference."""

import calendar
import hashlib
import time
from urllib.parse import parse_qs

from tests.faults.http1 import Headers, Request
from tests.faults.sigv4 import AUTHORIZATION, signature
from tests.system.fakes_keys import Fake

ROLE = "arn:aws:iam::123456789012:role/"


def signed_at(headers):
    return calendar.timegm(time.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ"))


class Sts(Fake):
    """secrets: access key -> (secret, its holder's name) of those it knows beside the keys it has handed out itself.
    roles: name -> parameters that an assumption must carry. web_tokens: those that it takes.
    assumed: (role name, by whom, parameters) of each success."""

    def __init__(self, keys, roles, secrets=None, web_tokens=(), **how):
        super().__init__(keys, **how)
        self.roles, self.secrets, self.web_tokens = roles, secrets or {}, list(web_tokens)
        self.assumed = []

    def reply(self, method, path, headers, body):
        parameters = {name: values[0] for name, values in parse_qs(body.decode(), strict_parsing=True).items()}
        action = parameters.pop("Action")
        assert (method, path, parameters.pop("Version")) == ("POST", "/", "2011-06-15")
        if action == "AssumeRoleWithWebIdentity":
            if "authorization" in headers or parameters.pop("WebIdentityToken") not in self.web_tokens:
                return self.error(400, "InvalidIdentityToken", "No OpenIDConnect provider found")
            by = "web identity"
        else:
            by = self.signer(method, path, headers, body)
            if by and abs(signed_at(headers) - time.time() - self.keys.clock) > 900:
                return self.error(403, "SignatureDoesNotMatch", "Signature expired")
            if not by:
                return self.error(403, "SignatureDoesNotMatch", "The request signature we calculated does not match")
        name = parameters.pop("RoleArn").removeprefix(ROLE)
        wanted = self.roles.get(name)
        if wanted is None or any(parameters.get(key) != value for key, value in wanted.items()):
            return self.error(403, "AccessDenied", f"User is not authorized to perform: sts:AssumeRole on {name}")
        self.assumed.append((name, by, parameters))
        key = self.keys.issue(name, self.seconds)
        return 200, (
            f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result>'
            f"<AssumedRoleUser><Arn>{name}</Arn><AssumedRoleId>A:s</AssumedRoleId></AssumedRoleUser><Credentials>"
            f"<AccessKeyId>{key.access_key}</AccessKeyId><SecretAccessKey>{key.secret}</SecretAccessKey>"
            f"<SessionToken>{key.token}</SessionToken><Expiration>{key.expiration}</Expiration></Credentials>"
            f"</{action}Result><ResponseMetadata><RequestId>r-1</RequestId></ResponseMetadata></{action}Response>"
        )

    def signer(self, method, path, headers, body):
        """The owner of the signing key, or None."""
        found = AUTHORIZATION.match(headers.get("authorization", ""))
        if not found:
            return None
        access_key, _, scope = found[1].partition("/")
        key = self.keys.all.get(access_key)
        secret, holder = (key.secret, key.source) if key else self.secrets.get(access_key, (None, None))
        names = found[2].split(";")
        if not secret or scope.split("/")[2:] != ["sts", "aws4_request"] or "content-type" not in names:
            return None
        if key and ("x-amz-security-token" not in names or headers.get("x-amz-security-token") != key.token):
            return None
        request = Request(method, path, Headers(headers))
        payload = hashlib.sha256(body).hexdigest()
        return holder if signature(request, secret, names, scope, payload) == found[3] else None

    @staticmethod
    def error(status, code, message):
        return status, (
            '<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type>'
            f"<Code>{code}</Code><Message>{message}</Message></Error><RequestId>r-2</RequestId></ErrorResponse>"
        )
