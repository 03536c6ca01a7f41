"""A fake of IAM Identity Center: GetRoleCredentials of its portal and CreateToken of its OIDC service, after their API
references; and of the cache that `aws sso login` leaves."""

import hashlib
import json
import time
from urllib.parse import parse_qs, urlsplit

from tests.system.fakes_keys import Fake


def utc(seconds_from_now, end="Z"):
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + seconds_from_now)) + end


def cache_file(aws, name):
    folder = aws / "sso" / "cache"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{hashlib.sha1(name.encode()).hexdigest()}.json"


class Sso(Fake):
    """tokens: access tokens that it takes. refresh: the refresh token that it exchanges, once; for a new token of `life` s."""

    def __init__(self, keys, tokens=(), refresh=None, life=28800, **how):
        super().__init__(keys, **how)
        self.tokens, self.refresh, self.life = set(tokens), refresh, life

    def reply(self, method, path, headers, body):
        if (method, path) == ("POST", "/token"):
            return self.create_token(json.loads(body))
        asked = urlsplit(path)
        if (method, asked.path) != ("GET", "/federation/credentials"):
            return 404, {}
        if headers.get("x-amz-sso_bearer_token") not in self.tokens:
            return 401, {"__type": "UnauthorizedException", "message": "Session token not found or invalid"}
        if parse_qs(asked.query) != {"account_id": ["123456789012"], "role_name": ["Up+load er"]}:
            return 403, {"message": "No access"}
        key = self.keys.issue("sso", self.seconds)
        names = {"accessKeyId": key.access_key, "secretAccessKey": key.secret, "sessionToken": key.token}
        return 200, {"roleCredentials": {**names, "expiration": int((key.expires + key.clock) * 1000)}}

    def create_token(self, asked):
        wanted = {"grantType": "refresh_token", "clientId": "id", "clientSecret": "cs", "refreshToken": self.refresh}
        if asked != wanted:
            return 400, {"error": "invalid_grant"}
        self.refresh = "refresh-2"
        self.tokens.add("access-2")
        return 200, {"accessToken": "access-2", "expiresIn": self.life, "refreshToken": self.refresh, "tokenType": "Bearer"}
